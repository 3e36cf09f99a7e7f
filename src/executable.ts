// The entry point of the executable: the program of a worker if the first process started it as one, else the command line.
import { WORKER_ARGUMENT } from './workers/shared.ts'
await (process.argv[2] === WORKER_ARGUMENT && process.connected ? import('./worker.ts') : import('./main.ts'))

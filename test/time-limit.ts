// Ends a test file that hangs or leaves a handle open (node --import), as a failure. Node's --test-timeout only fails
// the test: the process of its file stays, and the run waits for it.
import { writeSync } from 'node:fs'
import { basename } from 'node:path'
import { isMainThread, Worker, workerData } from 'node:worker_threads'

const SECONDS = Number(process.env['TEST_FILE_SECONDS'] ?? 900)

// Only in the processes of test files, not in the runner that starts them.
if (isMainThread && process.env['NODE_TEST_CONTEXT'] === 'child-v8') {
  // A thread, since a timer would wait for a blocked event loop.
  new Worker(new URL(import.meta.url), { workerData: basename(process.argv[1]!), execArgv: [] }).unref()
} else if (!isMainThread) {
  setTimeout(() => {
    writeSync(2, `${workerData} is ended after ${SECONDS} s: a test hangs, or a handle is left open.\n`)
    process.kill(process.pid, 'SIGKILL')
  }, SECONDS * 1000)
}

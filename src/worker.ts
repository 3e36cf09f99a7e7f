// The program of a worker: serves as the first process does, on that one's listening socket, until it is told to stop.
import type { Server } from 'node:net'
import { createLogTo } from './log.ts'
import { type Serving, startServing } from './serving.ts'
import type { Shared } from './http/shared.ts'
import { Channel } from './workers/channel.ts'
import type { ForFirst, ForWorker, WorkerStart } from './workers/protocol.ts'

/** A signal to the whole group also reaches the first process, which then says when to stop. */
const GROUP_SIGNAL_MS = 1000

let serving: Promise<Serving> | undefined
let isTold = false
let stopped: Promise<void> | undefined

const ours: ForWorker = {
  start,
  ping: () => {},
  tell: async (what) => (await serving)?.told[what](),
  snapshot: async () => (await serving)?.metrics?.snapshot(),
  async drain() {
    isTold = true
    ;(await serving)?.drain()
  },
  async stop() {
    isTold = true
    await stop()
  },
}
const first = new Channel<ForFirst>(process, ours)
const shared: Shared = {
  lease: (...parameters) => first.call('lease', ...parameters),
  hold: (...parameters) => first.call('hold', ...parameters),
  takeTry: (...parameters) => first.call('takeTry', ...parameters),
  rightTry: (...parameters) => first.call('rightTry', ...parameters),
  unmadeTry: (...parameters) => first.call('unmadeTry', ...parameters),
  takeSignUp: (...parameters) => first.call('takeSignUp', ...parameters),
  tellOthers: (...parameters) => first.call('tellOthers', ...parameters),
  // Without the first process this one is about to end.
  allowConnections: (open) => first.call('allowConnections', open).catch(() => open),
}

// What was acknowledged is in the database: nothing is lost. The next instance needs the port, and an exit would wait for a
// disk that hangs.
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'))
// A terminal sends this to every process, and the first one says when to stop.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => setTimeout(() => void leave(), GROUP_SIGNAL_MS))
// There is nowhere left to report it; the first process stops the service.
for (const output of [process.stdout, process.stderr]) output.on('error', () => {})

async function start({ config, timeouts }: WorkerStart): Promise<void> {
  const log = createLogTo(process.stdout, config.logLevel)
  const where = { receive: receiveSocket }
  const [clock, monotonic] = [Date.now, () => performance.now()]
  const onBroken = ({ message }: Error) => void first.call('fail', message).catch(() => {})
  serving = startServing({ config, log, shared, where, clock, monotonic, timeouts, onBroken, isWorker: true })
  await serving
}

/** The socket is taken over in the turn in which it arrives: connections accepted from it before would be lost. */
function receiveSocket(): Promise<Server> {
  return new Promise((resolve, reject) => {
    process.on('message', (_message, socket?: Server) => void (socket !== undefined && resolve(socket)))
    first.call('sendSocket').catch(reject)
  })
}

function stop(): Promise<void> {
  return (stopped ??= finish())
}

async function finish(): Promise<void> {
  const started = await serving?.catch(() => undefined)
  await started?.finish()
  await started?.close()
}

/** Ends this worker alone; the first process replaces it. */
async function leave(): Promise<void> {
  if (isTold) return
  await stop()
  process.exit()
}

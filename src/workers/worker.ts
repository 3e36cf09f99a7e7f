// The program of a worker: a front like the primary's, which leaves writes and requests for anything but an operation to it.
import type { Server } from 'node:net'
import type { Usage } from '../accounts/usage.ts'
import { closeStore, createAnswering, createFront, type Front, loadMetrics, storeObserver } from '../front.ts'
import type { Metrics } from '../http/metrics.ts'
import { finish } from '../listening.ts'
import { createLogTo, type Log } from '../log.ts'
import { Channel, processWire } from '../store/channel.ts'
import { openForServing } from '../store/opening-store.ts'
import { type RemoteStore, withRemoteWrites } from '../store/remote-writes.ts'
import type { Store } from '../store/store.ts'
import { removeBack } from './back.ts'
import { passOnTo } from './pass-on.ts'
import type { ForPrimary, ForWorker, WorkerStart } from './protocol.ts'

let stopping = false
const isStopping = () => stopping
let back: string | undefined
let metrics: Metrics | undefined
let running: { front: Front; usage: Usage; store: Store; log: Log } | undefined

// A terminal sends its signals to every process; when to stop is the primary's to say.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {})
// Without the primary nothing could be written. It may have been killed, and then nobody else removes its socket.
process.on('disconnect', () => {
  if (back !== undefined) removeBack(back)
  process.exit(1)
})
// There is nowhere left to report it; the primary stops the service.
for (const output of [process.stdout, process.stderr]) output.on('error', () => {})

const ours: ForWorker = {
  start,
  forgetKeys: () => running?.front.forgetKeys(),
  flushUsage: async () => running?.usage.flush(),
  snapshot: async () => metrics?.snapshot(),
  drain() {
    stopping = true
  },
  stop,
}
const primary = new Channel<ForPrimary>(processWire(process), ours)
const remote: RemoteStore = {
  call: (...call) => primary.call('callStore', ...call),
  createEach: (newPets) => primary.call('createEach', newPets),
}

async function start({ config, back: path, timeouts }: WorkerStart): Promise<void> {
  back = path
  const log = createLogTo(process.stdout, config.logLevel)
  metrics = await loadMetrics(config)
  const observe = storeObserver(config, metrics, log)
  const options = { observe, isWorker: true, onBroken: () => process.exit(1) }
  const { store: local, opened } = await openForServing(config, log, options)
  // The primary finds the same, tells it, and ends.
  opened.catch(() => {})
  const store = config.database.engine === 'sqlite' ? withRemoteWrites(local, remote) : local
  metrics?.watchStore(store)
  const clock = Date.now
  const answering = createAnswering({ config, log, store, clock, metrics, isStopping })
  const front = createFront({
    config,
    log,
    store,
    clock,
    monotonic: () => performance.now(),
    metrics,
    answering,
    elsewhere: passOnTo(path, answering.send, isStopping, config.trustProxy),
    lease: (account, wanted) => primary.call('lease', account, wanted),
    timeouts,
  })
  running = { front, usage: answering.usage, store, log }
}

// The front takes the socket over at once: until then, connections that are accepted from it would be lost.
process.on('message', (_message, socket?: Server) => {
  if (socket !== undefined) running!.front.server.listen(socket)
})

async function stop(): Promise<void> {
  stopping = true
  if (running === undefined) return
  const { front, usage, store, log } = running
  await finish(front.server)
  await closeStore(store, usage, log)
}

// The program of a worker: serves requests from the listening socket of the first process, until that process stops it.
import type { Server } from 'node:net'
import type { Config } from './config.ts'
import { VERSION } from './contract/operations.ts'
import type { Timeouts } from './http/app.ts'
import { ConnectionLimit } from './http/connection-limit.ts'
import { Lifecycle } from './http/lifecycle.ts'
import { createLogTo, type Log } from './log.ts'
import { type Serving, startServing } from './serving.ts'
import { Channel } from './workers/channel.ts'
import { FirstProcess } from './workers/first-process.ts'
import { createSharedLimits, type FirstProcessMethods, type WorkerMethods } from './workers/shared.ts'

/** How long a worker waits after SIGTERM: if its whole process group got the signal, the first process stops it. */
const GROUP_SIGNAL_MS = 1000

const lifecycle = new Lifecycle()
let log: Log | undefined
let firstProcess: FirstProcess | undefined
let connectionLimit: ConnectionLimit | undefined
let serving: Promise<Serving> | undefined

const methods: WorkerMethods = {
  start,
  ping: () => firstProcess?.onPing(),
  giveBackSlots: async () => (await connectionLimit?.giveBack()) ?? 0,
  onBroadcast: async (event) => (await serving)?.onBroadcast[event](),
  snapshot: async () => (await serving)?.metrics?.snapshot(),
  drain: () => lifecycle.drain(),
  // The first process disconnects after this call, which kills this process.
  stop,
}
const first = new Channel<FirstProcessMethods>(process, methods)

// The first process has ended. SIGKILL frees the port for the next instance at once; process.exit would wait for a disk that
// hangs. Nothing is lost: every acknowledged write is in the database.
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'))
// Ctrl-C in a terminal sends SIGINT to every process; the first process then stops the workers.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => setTimeout(() => void leave(), GROUP_SIGNAL_MS))
// A failed output must not end the process; the first process reports it (log.ts).
for (const output of [process.stdout, process.stderr]) output.on('error', () => {})

async function start(version: string, config: Config, timeouts: Timeouts | undefined): Promise<string> {
  if (version !== VERSION) return VERSION
  log = createLogTo({ stdout: process.stdout, events: process }, config.logLevel)
  const monotonic = () => performance.now()
  firstProcess = new FirstProcess(process.ppid, first, log)
  connectionLimit = new ConnectionLimit((wanted) => first.call('leaseSlots', wanted))
  const shared = firstProcess.share(createSharedLimits(config, monotonic), connectionLimit)
  serving = startServing({
    config,
    log,
    lifecycle,
    shared,
    where: { receive: receiveSocket },
    clock: Date.now,
    monotonic,
    timeouts,
    onBroken: ({ message }) => void first.call('fail', message).catch(() => {}),
    isStoreOpen: () => first.call('isStoreOpen'),
    isFirstProcessHung: firstProcess.isHung,
  })
  await serving
  firstProcess.watch()
  return VERSION
}

/** Takes over the listening socket in the turn of the event loop in which it arrives: connections accepted earlier would be lost. */
function receiveSocket(): Promise<Server> {
  return new Promise((resolve, reject) => {
    process.on('message', (_message, socket?: Server) => void (socket !== undefined && resolve(socket)))
    first.call('sendSocket').then((slots) => connectionLimit!.extend(slots), reject)
  })
}

async function stop(): Promise<void> {
  // At once: a start that is still waiting for the store delays the stop itself.
  lifecycle.drain()
  const started = await serving?.catch(() => undefined)
  if (started !== undefined) await lifecycle.stop(started, log!)
  log?.flush()
}

/** Ends only this worker, gracefully; the first process replaces it. */
async function leave(): Promise<void> {
  if (lifecycle.state !== 'serving') return
  await stop()
  process.exit()
}

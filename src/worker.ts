// The program of a worker: serves requests from the listening socket of the first process, until that process stops it.
import type { Server } from 'node:net'
import type { Config } from './config.ts'
import { VERSION } from './contract/operations.ts'
import type { Timeouts } from './http/app.ts'
import { Lifecycle } from './http/lifecycle.ts'
import { createLogTo, type Log } from './log.ts'
import { type Serving, startServing } from './serving.ts'
import { Overdue, withinTime } from './timing.ts'
import {
  type Broadcast,
  CALL_LIMIT_MS,
  Channel,
  type FirstProcessMethods,
  HEARTBEAT_MS,
  type WorkerMethods,
} from './workers/channel.ts'

/** The first process waits for CALL_LIMIT_MS for each other worker. */
const BROADCAST_LIMIT_MS = 2 * CALL_LIMIT_MS

/** The first process hangs if this many heartbeats have passed without a ping, which is 10 to 15 s after the last one. */
const MOST_MISSED = 3
const HANGS =
  'the first process does not answer: not ready; there are no chores, no admin port and no replacement of workers. If this ' +
  'lasts, restart the service'

const lifecycle = new Lifecycle()
let log: Log | undefined
let serving: Promise<Serving> | undefined
let missedPings = 0
const isFirstProcessHung = () => missedPings >= MOST_MISSED

const methods: WorkerMethods = {
  start,
  ping,
  onBroadcast: async (event) => (await serving)?.onBroadcast[event](),
  snapshot: async () => (await serving)?.metrics?.snapshot(),
  drain: (seconds) => lifecycle.drain(seconds),
  // The first process disconnects after this call, which kills this process.
  stop,
}
const first = new Channel<FirstProcessMethods>(process, methods)

// The first process has ended. SIGKILL frees the port for the next instance at once; process.exit would wait for a disk that
// hangs. Nothing is lost: every acknowledged write is in the database.
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'))
// Ctrl-C, a closed terminal and systemd send their signal to every process; the first process then stops the workers.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {})
// A failed output must not end the process; the first process reports it (log.ts).
for (const output of [process.stdout, process.stderr]) output.on('error', () => {})

async function start(version: string, config: Config, timeouts: Timeouts | undefined): Promise<string> {
  if (version !== VERSION) return VERSION
  log = createLogTo({ stdout: process.stdout, events: process }, config.logLevel)
  serving = startServing({
    config,
    log,
    lifecycle,
    broadcast,
    where: receiveSocket,
    clock: Date.now,
    monotonic: () => performance.now(),
    timeouts,
    onBroken: ({ message }) => void first.call('fail', message).catch(() => {}),
    isStoreOpen: () => first.call('isStoreOpen'),
    isFirstProcessHung,
  })
  await serving
  // If this worker itself was suspended, the timer counts a single heartbeat for that time.
  setInterval(() => {
    missedPings += 1
    if (missedPings === MOST_MISSED) log!.error({ firstProcess: process.ppid }, HANGS)
  }, HEARTBEAT_MS).unref()
  return VERSION
}

function ping(): void {
  if (isFirstProcessHung()) log!.notice({ firstProcess: process.ppid }, 'the first process answers again')
  missedPings = 0
}

/** Asks the first process to broadcast; stops waiting if it hangs. */
async function broadcast(event: Broadcast): Promise<void> {
  try {
    await withinTime(first.call('broadcast', event), BROADCAST_LIMIT_MS)
  } catch (error) {
    if (!(error instanceof Overdue)) throw error
  }
}

/** Takes over the listening socket in the turn of the event loop in which it arrives: connections accepted earlier would be lost. */
function receiveSocket(): Promise<Server> {
  return new Promise((resolve, reject) => {
    process.on('message', (_message, socket?: Server) => void (socket !== undefined && resolve(socket)))
    first.call('sendSocket').catch(reject)
  })
}

async function stop(): Promise<void> {
  // At once: a start that is still waiting for the store delays the stop itself.
  lifecycle.drain()
  const started = await serving?.catch(() => undefined)
  if (started !== undefined) await lifecycle.stop(started, log!)
  log?.flush()
}

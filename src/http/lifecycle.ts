// The states of an instance: what leads from one to the next, what /livez and /readyz answer meanwhile, and how long each may last.
//
//                   the database answers
//   starting ───▶ not ready ◀─────────▶ ready
//                     └─────────┬─────────┘
// SIGTERM, SIGHUP, if there are ├──▶ draining ─┐ drainSeconds have passed
//                  drainSeconds │              │
//         a signal, a failure   └──────────────┴──▶ stopping ───▶ stopped
//
// State     | Connections and requests                      | /livez, /readyz  | Lasts
// starting  | none accepted (listening.ts)                  | no connection    | until the server listens
// not ready | served; 503 for what needs the database       | 200, 503         | while `createReadiness` has a reason
// ready     | served                                        | 200, 200         | until a signal, or `Running.broken` rejects
// draining  | served; most answers close their connection   | 200, 503         | drainSeconds (config.ts)
// stopping  | no new connection; running requests answered  | 200, 503 (*)     | 10 s at most: `Lifecycle.stop` has the steps
// stopped   | none                                          | no connection    | the log is flushed, and the process exits (main.ts)
//
// (*) on open connections, and on the admin port until the running requests are answered. A second signal ends the process at once.
//
// Each process has a Lifecycle. The first process drains and stops the workers together with itself; a worker ignores signals
// (worker.ts). Ready or not is asked each time, and not remembered.
import type { Server } from 'node:http'
import { Refusal } from '../contract/errors.ts'
import { RETRY_AFTER } from '../contract/limits.ts'
import { jsonContent } from './answers/content.ts'
import type { Answer, Result } from './call/call.ts'
import { cutOff } from './connections/listening.ts'
import { closeListener } from './connections/node-http.ts'
import type { Log } from '../log.ts'
import { CannotCloseStore, NoWrites, type Store, StoreBusy, StoreUnavailable } from '../store/store.ts'
import { withinTime } from '../timing.ts'

/** A database that takes longer counts as unavailable: load balancers and Prometheus wait only a few seconds for an answer. */
const PING_WITHIN_MS = 2000

/** How long `stop` may take in all: process managers kill after some more seconds. */
const STOP_WITHIN_MS = 10_000

/** After this time requests that still run are cut off. */
export const FINISH_WITHIN_MS = 6000

/** How long each last step may take: a database that hangs must not delay a stop. */
export const LAST_STEP_MS = 1500

/** A worker that takes longer to stop is killed: two last steps of the first process follow. */
export const WORKER_STOP_WITHIN_MS = STOP_WITHIN_MS - 2 * LAST_STEP_MS

/** How long an open connection may still send one more request after the listening socket is closed. */
export const LAST_REQUEST_MS = 250

/**
 * In the rest of a drain connections are kept. A proxy that asks for no health, such as nginx, sends requests until the listening socket is
 * closed; each on a new connection, some would wait to be accepted in that moment, and be reset.
 */
const CLOSING_SHARE = 0.8

/** How often idle connections are closed after that. */
const SWEEP_EVERY_MS = 50

/** What a process ends when it stops. Only the first process has workers, chores and an admin port. */
interface ProcessParts {
  server: Server
  usage: { stop(): Promise<void> }
  store: Store
  tracer: { stop(): Promise<void> } | undefined
  workers?: { stop(): Promise<void> } | undefined
  stopChores?: (() => Promise<void>) | undefined
  admin?: Server | undefined
}

export class Lifecycle {
  #state: 'serving' | 'draining' | 'stopping' = 'serving'
  #stopped: Promise<boolean> | undefined
  #keepsFrom = 0

  get state() {
    return this.#state
  }

  /** Whether each answer closes its connection. */
  get closesConnections(): boolean {
    return this.#state === 'stopping' || (this.#state === 'draining' && performance.now() < this.#keepsFrom)
  }

  /** Reports not ready, and continues to serve, for this time if it is known. */
  drain(seconds = Infinity): void {
    if (this.#state !== 'serving') return
    this.#state = 'draining'
    this.#keepsFrom = performance.now() + seconds * CLOSING_SHARE * 1000
  }

  /** Resolves within ten seconds; with false if the store can't be closed (`CannotCloseStore`): the process must be killed. */
  stop(parts: ProcessParts, log: Log): Promise<boolean> {
    this.#state = 'stopping'
    return (this.#stopped ??= stopInOrder(parts, log))
  }

  /** Stops a process that could not start. Cuts off all requests; rejects with `CannotCloseStore`. */
  async abandon({ server, store, workers, admin }: Omit<ProcessParts, 'usage' | 'tracer'>): Promise<void> {
    this.#state = 'stopping'
    await workers?.stop()
    await Promise.all([cutOff(server), cutOff(admin)])
    await store.close()
  }
}

async function stopInOrder(parts: ProcessParts, log: Log): Promise<boolean> {
  const { server, usage, store, tracer, workers, stopChores, admin } = parts
  // A running purge must end before the store is closed. Workers close their stores first: the last process to close SQLite
  // removes the write-ahead log.
  await Promise.all([
    finishRequests(server),
    workers?.stop(),
    lastStep(stopChores?.(), 'old records were still being purged, or names indexed', log),
  ])
  await cutOff(admin)
  await Promise.all([
    lastStep(usage.stop(), 'the last usage counts and failed requests could not be written', log),
    lastStep(tracer?.stop(), 'the last traces could not be exported', log),
  ])
  const failure = await lastStep(store.close(), 'the store could not be closed in order', log)
  return !(failure instanceof CannotCloseStore)
}

/** Accepts no more connections, closes idle ones soon and busy ones after their answer, then cuts off the rest. */
export async function finishRequests(server: Server): Promise<void> {
  let sweep: NodeJS.Timeout | undefined
  // A connection that was answered before the stop stays open: the rest of its request, or the next one, may be arriving.
  const grace = setTimeout(() => {
    sweep = setInterval(() => server.closeIdleConnections(), SWEEP_EVERY_MS)
  }, LAST_REQUEST_MS)
  const cut = setTimeout(() => server.closeAllConnections(), FINISH_WITHIN_MS)
  await closeListener(server)
  clearTimeout(grace)
  clearInterval(sweep)
  clearTimeout(cut)
}

/** Waits for a last step. If it fails or is overdue, logs the error with the message `failure`, and returns the error. */
export async function lastStep(step: Promise<unknown> | undefined, failure: string, log: Log): Promise<unknown> {
  try {
    if (step !== undefined) await withinTime(step, LAST_STEP_MS)
    return undefined
  } catch (error) {
    log.error({ error }, failure)
    return error
  }
}

export const RECOVERED_LATER = 'exiting; the next start recovers the database'

interface Instance {
  broken: Promise<never>
  drain: (seconds: number) => Promise<void>
  stop: () => Promise<boolean>
}

/** Takes an instance that serves to its end, after a signal or a failure. Rejects with the failure. */
export async function serveUntilStopped(
  { broken, drain, stop }: Instance,
  stopSignal: Promise<string>,
  drainSeconds: number,
  log: Log,
  kill: () => void,
): Promise<void> {
  let signal: string
  try {
    signal = await Promise.race([stopSignal, broken])
    // After Ctrl-C (SIGINT) there is no load balancer to wait for.
    if (signal !== 'SIGINT' && drainSeconds > 0) {
      log.notice({ signal, seconds: drainSeconds }, 'draining: not ready, still serving')
      await Promise.race([drain(drainSeconds), broken])
    }
  } catch (error) {
    // After a failed sync the store must not be closed, so `stop` is not called (onBroken in store.ts).
    if (error instanceof StoreUnavailable) log.error({ error }, RECOVERED_LATER)
    else if (!(await stop())) {
      log.error({ error }, RECOVERED_LATER)
      kill()
    }
    throw error
  }
  log.notice({ signal }, 'stopping: finishing open requests')
  if (await stop()) log.notice('stopped')
  else kill()
}

/** Resolves with the reason why the service is not ready, or undefined if it is. */
export type Readiness = () => Promise<string | undefined>

/** `isFirstProcessHung` is given in a worker: without the first process there are no metrics, chores or replacements of workers. */
export function createReadiness(store: Store, lifecycle: Lifecycle, isFirstProcessHung = () => false): Readiness {
  return async () => {
    if (lifecycle.state !== 'serving') return 'The service is stopping.'
    if (isFirstProcessHung()) return 'The first process of the service does not answer.'
    try {
      await withinTime(store.ping(), PING_WITHIN_MS)
      return undefined
    } catch (error) {
      return publicReason(error)
    }
  }
}

/** Returns what a failure of the store says of itself, or any of its causes. */
function publicReason(error: unknown): string {
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if (cause instanceof StoreUnavailable && cause.publicReason !== undefined) return cause.publicReason
  if (error instanceof NoWrites) return 'The database accepts no writes.'
  return error instanceof StoreBusy ? 'All connections to the database are busy.' : 'The database does not answer.'
}

export type Health = Record<'/livez' | '/readyz', () => Answer | Promise<Result>>

/** Returns the health checks, with the same answers on the public port and on the admin port. */
export function createHealth(readiness: Readiness): Health {
  return {
    // Depends on nothing, so it answers as long as the event loop runs.
    '/livez': () => statusAnswer('alive'),
    '/readyz': async () => {
      const reason = await readiness()
      if (reason === undefined) return statusAnswer('ready')
      return new Refusal('service_unavailable', reason, ['Retry-After', String(RETRY_AFTER.notReady)])
    },
  }
}

function statusAnswer(status: string): Answer {
  return { status: 200, ...jsonContent(JSON.stringify({ status })) }
}

// Liveness and readiness, with the same answers on the public port and on the admin port. The admin port also serves the metrics,
// and stays reachable while the public port is overloaded.
import type { Server } from 'node:http'
import { Refusal } from '../contract/errors.ts'
import { quote } from '../contract/json.ts'
import { RETRY_AFTER } from '../contract/limits.ts'
import { NoWrites, type Store, StoreBusy } from '../store/store.ts'
import { withinTime } from '../timing.ts'
import { contentOf, jsonContent, type Responder } from './answer.ts'
import { type Answer, type Arrival, requestId, type Result } from './call.ts'
import { createServer } from './node-http.ts'
import { isRead, methodNotAllowed } from './routes.ts'

/** A database that takes longer counts as unavailable: load balancers and Prometheus wait only a few seconds for an answer. */
const ANSWER_WITHIN_MS = 2000

/** Resolves with the reason why the service is not ready, or undefined if it is. */
export type Readiness = () => Promise<string | undefined>

/** `isFirstProcessHung` is given in a worker: without the first process there are no metrics, chores or replacements of workers. */
export function createReadiness(store: Store, isStopping: () => boolean, isFirstProcessHung = () => false): Readiness {
  return async () => {
    if (isStopping()) return 'The service is stopping.'
    if (isFirstProcessHung()) return 'The first process of the service does not answer.'
    try {
      await withinTime(store.ping(), ANSWER_WITHIN_MS)
      return undefined
    } catch (error) {
      if (error instanceof NoWrites) return 'The database accepts no writes.'
      return error instanceof StoreBusy ? 'All connections to the database are busy.' : 'The database does not answer.'
    }
  }
}

export type Health = Record<'/livez' | '/readyz', () => Answer | Promise<Result>>

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

/** Creates the server of the admin port. `metricsPage` returns the page that Prometheus reads, of the type `contentType`. */
export function createAdmin(
  health: Health,
  metricsPage: () => Promise<string>,
  contentType: string,
  { respond, guard }: Responder,
): Server {
  const answers: Record<string, () => Result | Promise<Result>> = {
    ...health,
    '/metrics': async () => ({ status: 200, ...contentOf(await metricsPage(), contentType) }),
  }

  const serve = ({ raw, response, at }: Arrival) => {
    // No key protects this port, so its answers have no CORS headers.
    const call = { id: requestId(raw), raw, ip: raw.socket.remoteAddress ?? '', startedAt: at, sameOrigin: true }
    const path = raw.url!.split('?', 1)[0]!
    respond(call, response, () => {
      if (!Object.hasOwn(answers, path)) return unknownPath(path, Object.keys(answers))
      return isRead(raw.method) ? answers[path]!() : methodNotAllowed(raw.method!, path, 'GET, HEAD')
    })
  }
  return createServer((raw, response) => guard({ raw, response, at: performance.now() }, serve))
}

function unknownPath(path: string, known: readonly string[]): Refusal {
  return new Refusal('unknown_path', `There is nothing at ${quote(path)}; this port has ${known.join(', ')}.`)
}

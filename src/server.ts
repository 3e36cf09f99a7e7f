// Starts an instance. Its first process serves requests, serves the admin port, does the chores and starts the workers.
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import type { Config } from './config.ts'
import { Refusal } from './contract/errors.ts'
import { quote } from './contract/json.ts'
import { contentOf } from './http/answers/content.ts'
import type { Responder } from './http/answers/responder.ts'
import type { Timeouts } from './http/app.ts'
import { type Arrival, requestId, type Result } from './http/call/call.ts'
import { addressOf, type InheritedSocket, listen } from './http/connections/listening.ts'
import { createServer } from './http/connections/node-http.ts'
import { isRead, methodNotAllowed } from './http/call/routes.ts'
import { isLoopback, isOwnName } from './http/reach.ts'
import { Lifecycle } from './http/lifecycle.ts'
import type { Log } from './log.ts'
import { startServing } from './serving.ts'
import { startChores } from './store/chores.ts'
import { StoreUnavailable } from './store/store.ts'
import type { SendBroadcast } from './workers/channel.ts'
import type { Workers } from './workers/workers.ts'

const MISDIRECTED = new Refusal(
  'misdirected_request',
  'On a loopback address the admin port answers only to IP addresses and localhost, so that no page of another site can read it.',
)

export type Running = Awaited<ReturnType<typeof startServer>>

/** What the service takes from outside: a listening socket, clocks and timeouts. Tests replace them. */
interface World {
  /** A listening socket to use instead of the configured host and port. */
  socket?: InheritedSocket | undefined
  /** The time of day, for dates. Workers have their own clocks. */
  clock?: () => number
  /** A monotonic clock in milliseconds, for ages and windows: the time of day can be set back. */
  monotonic?: () => number
  timeouts?: Timeouts | undefined
}

export async function startServer(config: Config, log: Log, world: World = {}) {
  const { socket, clock = Date.now, monotonic = () => performance.now(), timeouts } = world
  /** Rejects with a message for the operator if the service cannot continue, such as with `CannotOpenStore`. */
  const broken = Promise.withResolvers<never>()
  // `petstore serve` awaits this promise. A test may not, and must not fail with an unhandled rejection.
  broken.promise.catch(() => {})
  let workers: Workers | undefined
  const onBroken = (error: Error) => {
    // A sync has failed: from now on no process may acknowledge a write, checkpoint, or close the database.
    if (error instanceof StoreUnavailable) void workers?.broadcast('giveUpStore')
    broken.reject(error)
  }
  const broadcast: SendBroadcast = async (event) => workers?.broadcast(event)
  const where = socket ?? { host: config.host, port: config.port, setting: '' as const }
  const lifecycle = new Lifecycle()
  const serving = await startServing({ config, log, lifecycle, broadcast, where, clock, monotonic, timeouts, onBroken })
  const { server, metrics, readiness, health, responder, store, opened } = serving
  let isOpen = false
  const isStoreOpen = () => isOpen
  // If the store cannot be opened, the caller sees the rejection of `broken`.
  opened.then(() => (isOpen = true)).catch(() => {})
  metrics?.watchInstance(readiness)
  const metricsPage = async () => {
    const page = await metrics!.render(await workers?.snapshots())
    return { status: 200, ...contentOf(page, metrics!.contentType) }
  }
  const admin = metrics && createAdmin({ ...health, '/metrics': metricsPage }, responder)
  try {
    if (admin !== undefined) await listen(admin, { host: config.adminHost, port: config.adminPort!, setting: 'admin-' })
    if (config.workers > 1) {
      // Imported on demand: most instances run one process.
      const { Workers } = await import('./workers/workers.ts')
      workers = new Workers({ ...serving, config, log, lifecycle, timeouts, onBroken, isStoreOpen })
      await workers.start()
    }
  } catch (error) {
    await lifecycle.abandon({ server, store, workers, admin })
    throw error
  }
  let stopChores: (() => Promise<void>) | undefined
  const whenOpened = () => {
    if (lifecycle.state !== 'stopping') stopChores = startChores(serving, clock)
  }
  opened.then(whenOpened, () => {})

  /** Drains all processes, and resolves after this time (lifecycle.ts). */
  async function drain(seconds: number): Promise<void> {
    lifecycle.drain(seconds)
    workers?.drain(seconds)
    await setTimeout(seconds * 1000)
  }

  const stop = () => lifecycle.stop({ ...serving, workers, stopChores, admin }, log)
  const { url, reach, accounts } = serving
  const adminUrl = admin && addressOf(admin)
  return { url, ...reach, adminUrl, accounts, store, broken: broken.promise, drain, stop }
}

/** Creates the server of the admin port, which stays reachable while the public port is overloaded. `answers` are by path. */
export function createAdmin(
  answers: Record<string, () => Result | Promise<Result>>,
  { respond, catchStray }: Responder,
): Server {
  /** By DNS rebinding, a page of another site could read the metrics of a developer's machine; elsewhere Prometheus uses names. */
  const isOwn = (host: string | undefined) =>
    !host || isOwnName(host) || !isLoopback((server.address() as AddressInfo).address)
  const serve = ({ request, response, at }: Arrival) => {
    // No key protects this port, so its answers have no CORS headers.
    const call = {
      id: requestId(request),
      request,
      ip: request.socket.remoteAddress ?? '',
      startedAt: at,
      sameOrigin: true,
    }
    const path = request.url!.split('?', 1)[0]!
    const unknown = () => `There is nothing at ${quote(path)}; this port has ${Object.keys(answers).join(', ')}.`
    void respond(call, response, () => {
      if (!isOwn(request.headers.host)) return MISDIRECTED
      if (!Object.hasOwn(answers, path)) return new Refusal('unknown_path', unknown())
      return isRead(request.method) ? answers[path]!() : methodNotAllowed(request.method!, path, 'GET, HEAD')
    })
  }
  const server = createServer((request, response) => catchStray({ request, response, at: performance.now() }, serve))
  return server
}

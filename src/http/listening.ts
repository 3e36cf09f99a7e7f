// Listening on an address or an inherited socket, and closing again: with or without waiting for the requests that are running.
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo, Server as NetServer } from 'node:net'
import type { Log } from '../log.ts'
import { withinTime } from '../store/within-time.ts'
import { closeListener } from './node-http.ts'

/** Running requests may take this long to finish, then they are cut off. With the last writes a stop stays under 10 s. */
const STOP_WITHIN_MS = 6000

/** A connection that was open when the listener closed has this long to bring one more request. */
const LAST_REQUEST_MS = 250

/** How often connections that have become idle are closed after that. */
const SWEEP_EVERY_MS = 50

/** An address to listen on; `setting` is the prefix of the settings that state it. */
export interface ListenAddress {
  host: string
  port: number
  setting: '' | 'admin-'
}

/**
 * A listening socket that another process has bound and keeps open, such as systemd. Connections wait in it while no
 * process of ours accepts them, and several processes can accept from one.
 */
export interface InheritedSocket {
  fd: number
}

/** How many connections may wait in an inherited socket during a restart; the kernel's own limit may be lower. */
const INHERITED_BACKLOG = 4096

/** The listening socket of an instance's first process, which a worker accepts from too. */
export interface HandedSocket {
  /** Called once the worker can serve: connections are accepted from the moment the socket arrives. */
  receive(): Promise<NetServer>
}

export type Where = ListenAddress | InheritedSocket | HandedSocket

export class CannotListen extends Error {
  override name = 'CannotListen'
  readonly where: Where
  constructor(where: Where, cause: unknown) {
    super(`cannot listen on ${nameOf(where)}`, { cause })
    this.where = where
  }
}

function nameOf(where: Where): string {
  if ('fd' in where) return `the inherited socket ${where.fd}`
  return 'host' in where ? `${where.host} port ${where.port}` : 'the socket of the first process'
}

/** The first socket that systemd passes on (sd_listen_fds(3)). */
const FIRST_FD = 3

/** Returns the socket that was passed to the process with this id; variables meant for another process are ignored. */
export function inheritedSocket(env: Record<string, string | undefined>, pid: number): InheritedSocket | undefined {
  const { LISTEN_PID, LISTEN_FDS = '0' } = env
  if (LISTEN_PID !== String(pid) || LISTEN_FDS === '0') return undefined
  if (LISTEN_FDS !== '1')
    throw new CannotListen({ fd: FIRST_FD }, `there are ${LISTEN_FDS} of them, and the service takes one`)
  return { fd: FIRST_FD }
}

/** Throws `CannotListen`. */
export async function listen(server: Server, where: Where): Promise<void> {
  try {
    if ('fd' in where) server.listen({ fd: where.fd, backlog: INHERITED_BACKLOG })
    else if ('host' in where) server.listen({ host: where.host, port: where.port })
    else server.listen(await where.receive())
    await once(server, 'listening')
    if (typeof server.address() !== 'object' || server.address() === null) throw new TypeError('it is not a TCP socket')
  } catch (error) {
    throw new CannotListen(where, error)
  }
}

/** Where it really listens, such as http://127.0.0.1:8080. */
export function addressOf(server: Server): string {
  const { address, family, port } = server.address() as AddressInfo
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}

/** Accepts no more connections, closes idle ones soon and busy ones with their answer; cuts off those that do not end by themselves. */
export async function finish(server: Server): Promise<void> {
  let sweep: NodeJS.Timeout | undefined
  // An answer that was sent before the stop does not end its connection, and the rest of its request may still be arriving.
  const grace = setTimeout(() => {
    sweep = setInterval(() => server.closeIdleConnections(), SWEEP_EVERY_MS)
  }, LAST_REQUEST_MS)
  const cut = setTimeout(() => server.closeAllConnections(), STOP_WITHIN_MS)
  await closeListener(server)
  clearTimeout(grace)
  clearInterval(sweep)
  clearTimeout(cut)
}

/** Closes the server without waiting for running requests. */
export async function cutOff(server: Server | undefined): Promise<void> {
  if (server === undefined) return
  const closed = close(server)
  server.closeAllConnections()
  await closed
}

/** Resolves when the last connection has ended; also for a server that never listened. */
function close(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()))
}

/** How long each of the last steps of a stop may take: a database that hangs must not hold it up. */
const LAST_STEP_MS = 1500

/** Waits for one of the last steps of a stop. What goes wrong is logged as `failure`, and returned. */
export async function lastStep(step: Promise<unknown>, failure: string, log: Log): Promise<unknown> {
  try {
    await withinTime(step, LAST_STEP_MS)
    return undefined
  } catch (error) {
    log.error({ error }, failure)
    return error
  }
}

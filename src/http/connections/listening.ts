// Makes a server listen on an address, an inherited socket or the socket of the first process; `finishRequests` of lifecycle.ts
// closes it gracefully.
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo, Server as NetServer } from 'node:net'

interface ListenAddress {
  host: string
  port: number
  /** The prefix of the settings `host` and `port`. */
  setting: '' | 'admin-'
}

/**
 * A listening socket that another program, such as systemd, has bound and keeps open. Connections wait in it while the service
 * restarts.
 */
export interface InheritedSocket {
  fd: number
}

/** How many connections may wait to be accepted, during a restart too. The kernel's limit may be lower. */
const BACKLOG = 4096

/**
 * In a worker, a function that asks for the listening socket of the first process. It is called when the worker can serve, which
 * accepts connections as soon as the socket arrives.
 */
type HandedSocket = () => Promise<NetServer>

export type Where = ListenAddress | InheritedSocket | HandedSocket

export class CannotListen extends Error {
  override name = 'CannotListen'
  readonly where: Where
  constructor(where: Where, cause: unknown) {
    super(`Cannot listen on ${nameOf(where)}: ${cause instanceof Error ? cause.message : String(cause)}.`, { cause })
    this.where = where
  }
}

function nameOf(where: Where): string {
  if ('fd' in where) return 'the socket that was passed on (LISTEN_FDS)'
  return 'host' in where ? `${where.host} port ${where.port}` : 'the socket of the first process'
}

/** The file descriptor of the first socket that systemd passes (sd_listen_fds(3)). */
const FIRST_FD = 3

/** Returns the socket that was passed to the process with this id. Ignores variables that are meant for another process. */
export function inheritedSocket(env: Record<string, string | undefined>, pid: number): InheritedSocket | undefined {
  const { LISTEN_PID, LISTEN_FDS = '0' } = env
  if (LISTEN_PID !== String(pid) || LISTEN_FDS === '0') return undefined
  if (LISTEN_FDS !== '1')
    throw new CannotListen({ fd: FIRST_FD }, `there are ${LISTEN_FDS} of them, and the service takes one`)
  return { fd: FIRST_FD }
}

/** Resolves when the server accepts connections; rejects with `CannotListen`. */
export async function listen(server: Server, where: Where): Promise<void> {
  try {
    if ('fd' in where) server.listen({ fd: where.fd, backlog: BACKLOG })
    else if ('host' in where) server.listen({ host: where.host, port: where.port, backlog: BACKLOG })
    else server.listen(await where())
    await once(server, 'listening')
    if (typeof server.address() !== 'object' || server.address() === null) throw new TypeError('it is not a TCP socket')
  } catch (error) {
    throw new CannotListen(where, error)
  }
}

/** Returns the address that the server listens on, with the actual port, such as http://127.0.0.1:8080. */
export function addressOf(server: Server): string {
  const { address, family, port } = server.address() as AddressInfo
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}

/** Closes the server without waiting for running requests. */
export async function cutOff(server: Server | undefined): Promise<void> {
  if (server === undefined) return
  const closed = Promise.withResolvers<void>()
  // Also calls back, with an error, if the server never listened.
  server.close(() => closed.resolve())
  server.closeAllConnections()
  await closed.promise
}

// Listening on an address, and closing again: with or without waiting for the requests that are running.
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Running requests may take this long to finish, then they are cut off. With the last writes a stop stays under 10 s. */
const STOP_WITHIN_MS = 6000

/** How often connections that have become idle are closed during a stop. */
const SWEEP_EVERY_MS = 50

/** An address to listen on; `setting` is the prefix of the settings that state it. */
export interface ListenAddress {
  host: string
  port: number
  setting: '' | 'admin-'
}

export class CannotListen extends Error {
  override name = 'CannotListen'
  readonly where: ListenAddress
  constructor(where: ListenAddress, cause: unknown) {
    super(`cannot listen on ${where.host} port ${where.port}`, { cause })
    this.where = where
  }
}

/** Throws `CannotListen`. */
export async function listen(server: Server, where: ListenAddress): Promise<void> {
  try {
    server.listen({ host: where.host, port: where.port })
    await once(server, 'listening')
  } catch (error) {
    throw new CannotListen(where, error)
  }
}

/** Where it really listens, such as http://127.0.0.1:8080. */
export function addressOf(server: Server): string {
  const { address, family, port } = server.address() as AddressInfo
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}

/** Closes idle connections now and busy ones with their answer; cuts off those that do not end by themselves. */
export async function drain(server: Server): Promise<void> {
  // An answer that was sent before the stop does not end its connection, and the rest of its request may still be arriving.
  const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_EVERY_MS)
  const cut = setTimeout(() => server.closeAllConnections(), STOP_WITHIN_MS)
  await close(server)
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

// Closes the connections of clients that stop reading their answers. A check of all connections once a second costs a request nothing; a
// timer for each answer would.
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { type Log, logRepeated } from '../../log.ts'
import { loggedRequest } from '../call/call.ts'
import { unsentBytes } from './node-http.ts'
import { dueResponse } from './request-order.ts'

export interface StallLimits {
  stalledTimeout: number
  connectionsCheckingInterval: number
  monotonic: () => number
  log: Log
}

/** Returns the open connections of a server, as a set that stays current. */
export function openConnections(server: Server): ReadonlySet<Socket> {
  const open = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })
  return open
}

/**
 * Closes connections whose clients have stopped reading: the operating system has taken nothing of an answer for `stalledTimeout`.
 * That is long, because it takes bytes in steps: over loopback it buffers 4 MB, and takes 1.4 MB more once the client has read as much.
 */
export function closeStalled(server: Server, limits: StallLimits): void {
  const { stalledTimeout, connectionsCheckingInterval, monotonic, log } = limits
  const open = openConnections(server)
  /** For connections that have bytes to send: how many the operating system has taken, and since when no more. */
  const progress = new WeakMap<Socket, { taken: number; since: number }>()
  const check = setInterval(() => {
    const now = monotonic()
    for (const socket of open) {
      const unsent = unsentBytes(socket)
      const taken = socket.bytesWritten - unsent
      const before = progress.get(socket)
      if (unsent === 0) progress.delete(socket)
      else if (taken !== before?.taken) progress.set(socket, { taken, since: now })
      else if (now - before.since >= stalledTimeout) {
        const request = dueResponse(socket)?.req
        const details = { ...(request && loggedRequest(request)), sentBytes: taken, address: socket.remoteAddress }
        logRepeated(log, 'warn', details, 'a client has stopped reading its answer: its connection is closed')
        socket.destroy()
      }
    }
  }, connectionsCheckingInterval).unref()
  server.once('close', () => clearInterval(check))
}

// node:http, and everything that relies on what Node does not document: each with its reason, and why no documented way serves.
// On a Node that behaves otherwise node-http.test.ts fails, and names what has changed (`npm run test:node-lines`).
import type { Server, ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import { Server as NetServer, type Socket } from 'node:net'

/**
 * As require gives it. An import reads every one of the exports, and some of those load a whole HTTP client that nobody here
 * needs: 40 ms of a start of 300.
 */
export const { createServer, STATUS_CODES } = createRequire(import.meta.url)('node:http') as typeof import('node:http')

/**
 * Lets a client that ends its side after its last request still get the answers. By default Node ends the connection at once;
 * the documented `allowHalfOpen` is an option of net.createServer alone.
 */
export function answerAfterEnd(server: Server): void {
  ;(server as Server & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true
}

/**
 * Stops reading from the connection of this response, and returns a function that goes on. Node adds up the bytes that wait to
 * be written on a connection and reads nothing while they are too many: this one claims to have too many. The documented
 * `socket.pause()` does not last: Node itself resumes when the body of a request that waits has arrived.
 */
export function stopReading(response: ServerResponse): () => void {
  const waiting = response as ServerResponse & { _onPendingData(bytes: number): void }
  const tooMany = response.req.socket.writableHighWaterMark + 1
  waiting._onPendingData(tooMany)
  return () => waiting._onPendingData(-tooMany)
}

/**
 * Decides how a connection ends after its last answer. Node calls `destroySoon` then, which resets the connection of a client
 * that still sends; no option or event comes before that.
 */
export function replaceEnd(socket: Socket, end: () => void): void {
  socket.destroySoon = end
}

/**
 * Takes what still arrives from the HTTP parser, so that it is no request. The parser reads by a listener for 'data', or below
 * the stream until somebody else listens. Nothing documented takes a socket from its server.
 */
export function takeFromParser(socket: Socket, take: (bytes: Buffer) => void): void {
  socket.removeAllListeners('data').on('data', take)
}

/**
 * Accepts no more connections; resolves when the last one has ended. The documented `close` of node:http also ends, at once,
 * connections whose next request is on its way or waits to be read; this is the close of node:net.
 */
export function closeListener(server: Server): Promise<void> {
  return new Promise((resolve) => NetServer.prototype.close.call(server, () => resolve()))
}

/**
 * Returns how many bytes of the last write have not reached the operating system. The documented `writableLength` counts the
 * whole write until its last byte has, so that a slow reader looks like one that has stalled.
 */
export function unsentBytes(socket: Socket): number {
  return (socket as Socket & { _handle?: { writeQueueSize: number } | null })._handle?.writeQueueSize ?? 0
}

/**
 * Makes the client's address known after a reset too, when the system no longer tells it: Node asks once and remembers. A
 * place of our own would have to be known to everything that reads `remoteAddress`.
 */
export function rememberAddress(socket: Socket): void {
  Reflect.get(socket, 'remoteAddress')
}

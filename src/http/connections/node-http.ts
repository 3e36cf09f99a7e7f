// node:http, and everything that relies on undocumented behaviour of Node, each with its reason and why no documented way works.
// On a Node that behaves differently node-http.test.ts fails and names the change (`npm run test:node-lines`).
import type { RequestListener, Server, ServerOptions, ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import { Server as NetServer, type Socket } from 'node:net'

/**
 * Loaded by require: an import reads every export, and some of them load a whole HTTP client, which the service does not use.
 * This saves 40 ms of a start of 300 ms.
 */
const http = createRequire(import.meta.url)('node:http') as typeof import('node:http')

export const { STATUS_CODES } = http

/**
 * Creates a server that ignores offers to upgrade, as servers may (RFC 9110, section 7.8). Node drops what comes behind such a request in
 * the same packet, so its answer must be the last of its connection (`mustBeLast` in answers/send.ts).
 */
export function createServer(serve?: RequestListener, options: ServerOptions = {}): Server {
  return http.createServer({ ...options, shouldUpgradeCallback: () => false }, serve)
}

/**
 * Lets a client that half-closes the connection after its last request still get the answers. By default Node closes the
 * connection at once. The documented `allowHalfOpen` is an option only of net.createServer.
 */
export function answerAfterEnd(server: Server): void {
  ;(server as Server & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true
}

/**
 * Stops reading from the connection of a response, and returns a function that resumes it. Node counts the bytes that wait to be
 * written to a connection, and reads nothing while there are too many; this function reports too many. The documented
 * `socket.pause()` does not last: Node resumes when the body of a waiting request has arrived.
 */
export function stopReading(response: ServerResponse): () => void {
  const waiting = response as ServerResponse & { _onPendingData(bytes: number): void }
  const tooMany = response.req.socket.writableHighWaterMark + 1
  waiting._onPendingData(tooMany)
  return () => waiting._onPendingData(-tooMany)
}

/**
 * Replaces how a connection is closed after its last answer. Node calls `destroySoon`, which resets the connection of a client
 * that is still sending. No option or event comes before this call.
 */
export function replaceEnd(socket: Socket, end: () => void): void {
  socket.destroySoon = end
}

/**
 * Passes the bytes that still arrive to `take` instead of the HTTP parser, so that no request is parsed from them. The parser
 * listens for 'data', or reads below the stream until there is another listener. Nothing documented detaches it from a socket.
 */
export function takeFromParser(socket: Socket, take: (bytes: Buffer) => void): void {
  socket.removeAllListeners('data').on('data', take)
}

/**
 * Accepts no more connections; resolves when the last one is closed. This is the `close` of node:net. The documented `close` of
 * node:http also closes, at once, connections whose next request is arriving or waits to be read.
 */
export function closeListener(server: Server): Promise<void> {
  return new Promise((resolve) => NetServer.prototype.close.call(server, () => resolve()))
}

/**
 * Returns how many bytes of the last write have not reached the operating system. The documented `writableLength` counts the
 * whole write until its last byte has reached it, so that a slow reader looks like a stalled one.
 */
export function unsentBytes(socket: Socket): number {
  return (socket as Socket & { _handle?: { writeQueueSize: number } | null })._handle?.writeQueueSize ?? 0
}

/**
 * Keeps the client's address available after a reset, when the operating system no longer knows it: Node asks for it once and
 * caches it. A cache in the service would be missed by libraries that read `remoteAddress`. Returns false if the connection was
 * reset before this process accepted it: its address is unknown, and stays undefined.
 */
export function rememberAddress(socket: Socket): boolean {
  return socket.remoteAddress !== undefined
}

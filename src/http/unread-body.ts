// What becomes of a connection whose request was answered before it had come whole, as with a 401 or a 413.
import type { IncomingMessage } from 'node:http'

/** Closing at once could take the answer from the client; this long it may go on sending, and read. */
const LINGER_MS = 2000

/** The rest of the body is read and dropped for a moment; a client that has not ended by then is cut off. */
export function dropRestOf(request: IncomingMessage): void {
  const { 'content-length': length, 'transfer-encoding': coding } = request.headers
  if (length === undefined && coding === undefined) return
  setTimeout(() => {
    if (!request.complete) request.socket.destroy()
  }, LINGER_MS).unref()
}

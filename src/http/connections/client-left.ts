// Tells work that takes long when its client has gone, so that nobody's share of the service goes to an answer that nobody reads.
import { addAbortListener } from 'node:events'
import type { ServerResponse } from 'node:http'
import { readOn } from './request-order.ts'

/** The client has gone, so that work for its answer is abandoned. */
export class ClientLeft extends Error {
  override name = 'ClientLeft'
  override message = 'The client left before it was answered.'
}

/**
 * Returns a signal that aborts when the client of the response that is due resets the connection or ends its side: one that has hung up
 * looks like one that still reads. (The request emits 'close' as soon as its body was read.)
 */
export function whenLeft(response: ServerResponse): AbortSignal {
  const { socket } = response.req
  if (response.destroyed || socket.readableEnded) return AbortSignal.abort(new ClientLeft())
  readOn(response)
  const left = new AbortController()
  const leave = () => left.abort(new ClientLeft())
  socket.once('end', leave)
  response.once('close', () => {
    socket.removeListener('end', leave)
    leave()
  })
  return left.signal
}

/** Resolves like the promise, or rejects as soon as the client has left. */
export async function unlessLeft<T>(promise: Promise<T>, left: AbortSignal): Promise<T> {
  const { promise: leaving, reject } = Promise.withResolvers<never>()
  using _listener = addAbortListener(left, () => reject(left.reason as Error))
  return await Promise.race([promise, leaving])
}

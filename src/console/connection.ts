// The connection that a request came on: its address, and whether the client is still there.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Log } from '../log.ts'

/** Work for this client is not worth doing any more; nobody reads the answer. */
export class ClientLeft extends Error {
  override name = 'ClientLeft'
  override message = 'The client left before it was answered.'
}

/** Returns a signal that aborts when the client leaves. The request's own 'close' event comes as soon as its body was read. */
export function whenLeft({ raw }: FastifyReply): AbortSignal {
  if (raw.destroyed) return AbortSignal.abort(new ClientLeft())
  const leave = new AbortController()
  raw.once('close', () => leave.abort(new ClientLeft()))
  return leave.signal
}

/** A connection that was reset has no address any more, though Fastify's types say that it has. */
export function addressOf(request: FastifyRequest): string {
  const ip: string | undefined = request.ip
  return ip ?? 'unknown'
}

/** Returns a function that warns once of a proxy that is not trusted: it makes all its clients one address to the throttles. */
export function createProxyWarning(log: Log): (request: FastifyRequest) => void {
  let warned = false
  return (request) => {
    // Fastify lists the client's address as well as the proxies', but only if the proxies are trusted.
    const isTrusted = (request.ips?.length ?? 1) > 1
    if (warned || isTrusted || !request.headers['x-forwarded-for']) return
    warned = true
    const message =
      'X-Forwarded-For is ignored, since it came from an address that is not trusted. If this is your proxy, name it in ' +
      'PETSTORE_TRUST_PROXY: until then all its clients are throttled as one'
    log.warn({ address: addressOf(request) }, message)
  }
}

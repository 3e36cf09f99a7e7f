// Where a request came from: the address that the trusted proxies tell of, by the same code that Fastify asks.
import type { IncomingMessage } from 'node:http'
import proxyAddr from '@fastify/proxy-addr'

export function createClientAddress(trustProxy: string[] | false): (raw: IncomingMessage) => string {
  if (trustProxy === false) return ({ socket }) => socket.remoteAddress ?? ''
  const trusted = proxyAddr.compile(trustProxy)
  return (raw) => proxyAddr(raw, trusted)
}

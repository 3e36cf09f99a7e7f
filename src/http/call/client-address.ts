// Where a request comes from, and which address it was sent to: from the connection, or as trusted proxies forward it.
import type { IncomingMessage } from 'node:http'
import proxyAddr from '@fastify/proxy-addr'

/** The address of the service that a client uses. */
export interface Origin {
  readonly protocol: string
  readonly host: string
  /** Whether an untrusted proxy forwarded the request. Its forwarding headers are ignored. */
  readonly untrustedProxy: boolean
}

/** Returns the address of the client, also behind trusted proxies. It is empty if the client has disconnected. */
export type ClientAddress = (request: IncomingMessage) => string

export function createClientAddress(trustProxy: string[] | false): ClientAddress {
  if (trustProxy === false) return ({ socket }) => socket.remoteAddress ?? ''
  const trusted = proxyAddr.compile(trustProxy)
  const trustedWithPort = (address: string | undefined, hop: number) => trusted(withoutPort(address), hop)
  return (request) => withoutPort(proxyAddr(request, trustedWithPort))
}

/** Some proxies append the client's port, as in 192.0.2.7:4711 or [2001:db8::7]:4711, which differs with each connection. */
function withoutPort(address = ''): string {
  return address.replace(/^(?:(\d+(?:\.\d+){3}):\d+|\[([^\]]*)\](?::\d+)?)$/, '$1$2')
}

/** Creates a function that returns the origin of a request: as a trusted proxy forwards it, or else from the Host header. */
export function createOrigin(trustProxy: string[] | false): (request: IncomingMessage) => Origin {
  const trusted = trustProxy === false ? () => false : proxyAddr.compile(trustProxy)
  return ({ headers, socket }) => {
    const isTrusted = trusted(socket.remoteAddress ?? '', 0)
    const forwarded = (name: string) => (isTrusted ? lastOf(headers[name]) : undefined)
    return {
      protocol: forwarded('x-forwarded-proto') ?? 'http',
      host: forwarded('x-forwarded-host') ?? headers.host ?? '',
      untrustedProxy: Boolean(headers['x-forwarded-for']) && !isTrusted,
    }
  }
}

/** Returns the last value of a list in a header: the one that the nearest proxy has appended. */
function lastOf(list: string | string[] | undefined): string | undefined {
  const last = String(list ?? '')
    .split(',')
    .at(-1)!
  return last.trim() || undefined
}

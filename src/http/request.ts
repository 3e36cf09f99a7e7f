// What the head of every request tells: its id, whether it keeps the rules of HTTP that Node leaves to us, and who sent it.
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import proxyAddr from '@fastify/proxy-addr'
import { Refusal } from '../contract/errors.ts'
import { quote } from '../contract/json.ts'
import { redactSecrets } from '../contract/redact.ts'
import { type Call, cameTwice, type Origin } from './call.ts'

const SANE_ID = /^[\w.:/+=-]{1,128}$/

/** Returns the id that every answer and log line of the request names. A well-formed one from the client is kept, so that a trace continues. */
export function requestId(raw: IncomingMessage): string {
  const incoming = raw.headers['request-id']
  return typeof incoming === 'string' && SANE_ID.test(incoming) && redactSecrets(incoming) === incoming
    ? incoming
    : randomUUID()
}

const HOST = /^[\w.~!$&'()*+,;=%:[\]-]*$/

export function checkFraming(request: Call): Refusal | undefined {
  const { httpVersion, httpVersionMajor, headers } = request.raw
  const { host, 'transfer-encoding': coding = 'chunked' } = headers
  if (httpVersionMajor !== 1) return malformed(`The request must be HTTP/1.1, got HTTP/${httpVersion}.`)
  if (host === undefined && httpVersion !== '1.0') return malformed('The Host header is missing.')
  if (host !== undefined && !HOST.test(host)) return malformed(`The Host header is not a host name: ${quote(host)}.`)
  if (cameTwice(request, 'host')) return malformed('The Host header was sent twice.')
  if (!/^chunked$/i.test(coding)) return malformed(`The only Transfer-Encoding is chunked, got ${quote(coding)}.`)
  return undefined
}

function malformed(message: string): Refusal {
  return new Refusal('malformed_request', message, ['Connection', 'close'])
}

/** Returns the address that a request came from, also behind trusted proxies; empty if the client left before it was asked. */
export function createClientAddress(trustProxy: string[] | false): (raw: IncomingMessage) => string {
  if (trustProxy === false) return ({ socket }) => socket.remoteAddress ?? ''
  const trusted = proxyAddr.compile(trustProxy)
  return (raw) => proxyAddr(raw, trusted) ?? ''
}

/** Returns a function that finds the address that a client uses: as a trusted proxy tells it, or else as it was sent. */
export function createOrigin(trustProxy: string[] | false): (raw: IncomingMessage) => Origin {
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

/** The nearest proxy appends what it has seen. */
function lastOf(list: string | string[] | undefined): string | undefined {
  const last = String(list ?? '')
    .split(',')
    .at(-1)!
  return last.trim() || undefined
}

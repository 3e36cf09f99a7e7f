// The head of a request on its way from a worker to the primary, as the worker has read it. Nothing in it is read as HTTP again:
// whatever a client sends, it can neither change where a request ends nor pretend to be another client.
import type { IncomingMessage } from 'node:http'
import { HEADERS_LIMIT } from '../contract/limits.ts'

/** The header that carries it. */
export const HEAD = 'petstore-head'

/** Names and values travel twice, and in base64. */
export const PACKED_LIMIT = 8 * HEADERS_LIMIT

type Head = Pick<
  IncomingMessage,
  'url' | 'httpVersion' | 'httpVersionMajor' | 'httpVersionMinor' | 'headers' | 'rawHeaders'
>

export function packHead(raw: IncomingMessage): string {
  const { url, httpVersion, httpVersionMajor, httpVersionMinor, headers, rawHeaders } = raw
  const head: Head = { url, httpVersion, httpVersionMajor, httpVersionMinor, headers, rawHeaders }
  return Buffer.from(JSON.stringify([raw.socket.remoteAddress, head])).toString('base64')
}

/** Makes a request that was passed on look as if it had come from the client itself. */
export function unpackHead(raw: IncomingMessage): void {
  const [remoteAddress, head] = JSON.parse(Buffer.from(String(raw.headers[HEAD]), 'base64').toString()) as [
    string | null,
    Head,
  ]
  Object.defineProperty(raw.socket, 'remoteAddress', { value: remoteAddress ?? undefined })
  Object.assign(raw, head)
}

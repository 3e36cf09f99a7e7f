// /openapi.json: the document with an address that generators can call, an ETag, and compressed for clients that take it.
import { gzipSync } from 'node:zlib'
import type { Config } from '../config.ts'
import { renderOpenapi } from '../contract/openapi.ts'
import { BASE_PATH } from '../contract/operations.ts'
import { isOwnName } from './reach.ts'
import { jsonContent } from './answer.ts'
import { etagOf, matchesEtag } from './answer-cache.ts'
import { type Answer, type Bytes, type PageCall, takesGzip } from './call.ts'

interface Representation {
  etag: string
  headers: readonly string[]
  body: Bytes
}

/** Few names lead to one machine; whoever sends others must not fill the memory. */
const MOST_KEPT = 8

export function createOpenapiRoute({ environment, baseUrl, stagingBaseUrl }: Config): (call: PageCall) => Answer {
  const kept = new Map<string, { plain: Representation; compressed: Representation }>()

  function documentFor(address: string) {
    const known = kept.get(address)
    if (known !== undefined) return known
    const json = renderOpenapi({ production: baseUrl, staging: stagingBaseUrl, here: { environment, address } })
    const document = { plain: plain(json), compressed: compressed(json) }
    if (kept.size >= MOST_KEPT) kept.clear()
    kept.set(address, document)
    return document
  }

  return (call) => {
    const document = documentFor(addressOf(call))
    const { etag, headers, body } = takesGzip(call) ? document.compressed : document.plain
    const validator = ['ETag', etag, 'Vary', 'Accept-Encoding']
    if (matchesEtag(call.raw.headers['if-none-match'], etag))
      return { status: 304, headers: validator, body: undefined }
    return { status: 200, headers: [...headers, ...validator], body }
  }
}

/** The address that this client uses, as far as its name can be believed; else relative. Only shown if none is configured. */
function addressOf({ protocol, host }: PageCall): string {
  return isOwnName(host) ? `${protocol}://${host}${BASE_PATH}` : BASE_PATH
}

function plain(json: string): Representation {
  return { ...jsonContent(json), etag: etagOf(json) }
}

function compressed(json: string): Representation {
  const bytes = gzipSync(json)
  const headers = [
    'Content-Type',
    'application/json',
    'Content-Encoding',
    'gzip',
    'Content-Length',
    String(bytes.length),
  ]
  return { headers, body: bytes.toString('latin1') as Bytes, etag: etagOf(bytes) }
}

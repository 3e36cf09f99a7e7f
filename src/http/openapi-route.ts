// Serves /openapi.json with an address that generators can call and an ETag, compressed for clients that accept gzip.
import { gzipSync } from 'node:zlib'
import type { Config } from '../config.ts'
import { renderOpenapi } from '../contract/openapi.ts'
import { BASE_PATH } from '../contract/operations.ts'
import { isOwnName } from './reach.ts'
import { etagOf, matchesEtag } from './answer-cache.ts'
import { acceptsGzip, type Answer, type PageCall } from './call.ts'

/** Few names lead to one machine. A client that sends many others must not fill the memory. */
const MOST_KEPT = 8

export function createOpenapiRoute({ environment, baseUrl, stagingBaseUrl }: Config): (call: PageCall) => Answer {
  const kept = new Map<string, Record<'plain' | 'compressed', ReturnType<typeof representation>>>()

  function documentFor(address: string) {
    const known = kept.get(address)
    if (known !== undefined) return known
    const json = renderOpenapi({ production: baseUrl, staging: stagingBaseUrl, here: { environment, address } })
    const document = {
      plain: representation(Buffer.from(json)),
      compressed: representation(gzipSync(json), ['Content-Encoding', 'gzip']),
    }
    if (kept.size >= MOST_KEPT) kept.clear()
    kept.set(address, document)
    return document
  }

  return (call) => {
    const document = documentFor(addressOf(call))
    const { etag, headers, body } = acceptsGzip(call) ? document.compressed : document.plain
    const validator = ['ETag', etag, 'Vary', 'Accept-Encoding']
    if (matchesEtag(call.request.headers['if-none-match'], etag))
      return { status: 304, headers: validator, body: undefined }
    return { status: 200, headers: [...headers, ...validator], body }
  }
}

/**
 * Returns the address that this client uses, or a relative one if its Host header cannot be trusted. The document shows
 * it only if this environment has no configured base address.
 */
function addressOf({ protocol, host }: PageCall): string {
  return isOwnName(host) ? `${protocol}://${host}${BASE_PATH}` : BASE_PATH
}

function representation(body: Buffer, encoding: string[] = []) {
  const headers = ['Content-Type', 'application/json', ...encoding, 'Content-Length', String(body.length)]
  return { etag: etagOf(body), headers, body }
}

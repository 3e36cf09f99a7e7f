// The rules of HTTP that Node does not check, and what a request may expect.
import { Refusal } from '../../contract/errors.ts'
import { quote } from '../../contract/json.ts'
import type { Call } from './call.ts'

const CLOSE = ['Connection', 'close']
const HOST = /^[\w.~!$&'()*+,;=%:[\]-]*$/

export function checkFraming(call: Call): Refusal | undefined {
  const { httpVersion, httpVersionMajor, headers } = call.request
  const { host, 'transfer-encoding': coding = 'chunked', expect } = headers
  if (httpVersionMajor !== 1) return malformed(`The request must be HTTP/1.1, got HTTP/${httpVersion}.`)
  if (host === undefined && httpVersion !== '1.0') return malformed('The Host header is missing.')
  if (host !== undefined && !HOST.test(host)) return malformed(`The Host header is not a host name: ${quote(host)}.`)
  if (cameTwice(call, 'host')) return malformed('The Host header was sent twice.')
  if (!/^chunked$/i.test(coding)) return malformed(`The only Transfer-Encoding is chunked, got ${quote(coding)}.`)
  if (expect !== undefined && !/\b100-continue\b/i.test(expect)) {
    return new Refusal('expectation_failed', `The Expect header takes only 100-continue, got ${quote(expect)}.`, CLOSE)
  }
  return undefined
}

function malformed(message: string): Refusal {
  return new Refusal('malformed_request', message, CLOSE)
}

/** Returns whether a header was sent twice. Node keeps only the first value of a header that may be sent once. */
export function cameTwice(call: Call, name: string): boolean {
  const { rawHeaders } = call.request
  let seen = false
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const header = rawHeaders[index]!
    if (header.length !== name.length || header.toLowerCase() !== name) continue
    if (seen) return true
    seen = true
  }
  return false
}

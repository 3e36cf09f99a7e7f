// First step: the rules of HTTP that Node leaves to us.
import { Refusal } from '../contract/errors.ts'
import { quote } from '../contract/json.ts'
import { type Call, cameTwice } from './call.ts'

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

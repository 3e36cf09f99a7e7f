// Parses the answers that the service sent on one connection, and lists those that it must never send.
import { readHead } from '../connections/raw-http.ts'
import { ERRORS, type ErrorBody } from '../../../src/contract/errors.ts'

export interface Read {
  statuses: number[]
  violations: string[]
}

/** With `mayBeHead` an answer to HEAD is accepted: it ends after its headers, despite its Content-Length. */
export function readAnswers(received: Buffer, mayBeHead: boolean): Read {
  const statuses: number[] = []
  const violations: string[] = []
  for (let rest = received; rest.length > 0;) {
    const head = readHead(rest.toString('latin1'))
    if (head === undefined || Number.isNaN(head.status))
      return { statuses, violations: [...violations, `not HTTP: ${rest.toString('latin1', 0, 80)}`] }
    const { status, headers } = head
    const after = rest.subarray(head.length)
    const bodyless = status < 200 || status === 204 || status === 304
    const isHead = mayBeHead && (after.length === 0 || after.toString('latin1', 0, 7) === 'HTTP/1.')
    const body = after.subarray(0, bodyless || isHead ? 0 : Number(headers.get('content-length')))
    if (status >= 200) statuses.push(status)
    if (status >= 500) violations.push(`${status} ${body.toString()}`)
    if (status >= 400 && !isHead) violations.push(...faultsOfError(status, headers, body.toString()))
    rest = after.subarray(body.length)
  }
  return { statuses, violations }
}

function faultsOfError(status: number, headers: ReadonlyMap<string, string>, body: string): string[] {
  if (isPage(headers, body)) return []
  try {
    const { code, message, status: statusInBody } = JSON.parse(body) as ErrorBody
    const isError = ERRORS[code].status === status && statusInBody === status && message.length > 0
    if (isError && headers.get('content-type') === 'application/json' && headers.has('request-id')) return []
  } catch {
    // The body is not JSON; reported below.
  }
  return [`${status} without the Error body: ${body.slice(0, 200)}`]
}

/** Returns whether this is an error page of the console: complete HTML, with the console's security headers. */
function isPage(headers: ReadonlyMap<string, string>, body: string): boolean {
  const hasHeaders = headers.has('request-id') && headers.get('x-frame-options') === 'DENY'
  return hasHeaders && headers.get('content-type') === 'text/html; charset=utf-8' && body.endsWith('</html>\n')
}

// Reads an HTTP response: returns its JSON value if it has content, or throws the error that describes it.
import { errorOfStatus, UnexpectedResponseError } from './errors.ts'
import { type Json, parseExactJson } from './exact-json.ts'
import { parseRetryAfter } from './retry.ts'

export interface Answer {
  /** Undefined for a 204, which has no content. */
  value: Json | undefined
  /** The address of the request. */
  url: URL
  status: number
  headers: Headers
  requestId: string | undefined
}

export interface Exchange {
  method: string
  url: URL
  response: Response
  /** The body of the response. */
  text: string
}

export function readAnswer({ method, url, response, text }: Exchange): Answer {
  const request = `${method} ${url.href}`
  const { status, headers, ok } = response
  const requestId = headers.get('Request-Id') ?? undefined
  // With `redirect: 'manual'` a browser hides the status of a redirect and reports 0.
  if (response.type === 'opaqueredirect' || (status >= 300 && status < 400)) {
    const target = headers.get('Location')
    const message = `${request} was redirected${target === null ? '' : ` to ${target}`}. Set baseUrl to the final address.`
    throw new UnexpectedResponseError({ code: 'unexpected_response', message, status, requestId })
  }
  const value = parseBody(text)
  if (status === 204 || (ok && value !== undefined)) return { value, url, status, headers, requestId }

  const retryAfter = parseRetryAfter(headers.get('Retry-After'))
  const { code, message } = (!ok && errorBodyOf(value)) || explain(request, response)
  throw errorOfStatus(status, { code, message, requestId, retryAfter })
}

function parseBody(text: string): Json | undefined {
  try {
    return parseExactJson(text)
  } catch (error) {
    // A RangeError is a stack overflow: the JSON is nested deeper than any answer of the service.
    if (error instanceof SyntaxError || error instanceof RangeError) return undefined
    throw error
  }
}

function errorBodyOf(value: Json | undefined): { code: string; message: string } | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const { code, message } = value
  return typeof code === 'string' && typeof message === 'string' ? { code, message } : undefined
}

/** Describes a response that did not come from this service, or that is incomplete. */
function explain(request: string, { status, headers, ok }: Response): { code: string; message: string } {
  const type = headers.get('Content-Type')?.split(';')[0]
  if (ok && type === 'application/json') {
    return {
      code: 'malformed_response',
      message: `${request} answered ${status} with JSON that is malformed or breaks off.`,
    }
  }
  const what = `${request} answered ${status} with ${type ?? 'no content type'} instead of the service's JSON`
  const why =
    status === 404 || ok ? 'check that baseUrl is the address of a pet store' : 'a proxy in between may have answered'
  return { code: 'unexpected_response', message: `${what}: ${why}.` }
}

// First step: the rules of HTTP that Node leaves to us.
import type { FastifyRequest } from 'fastify'
import type { Refusal } from '../contract/errors.ts'
import { cameTwice } from './call.ts'

const HOST = /^[\w.~!$&'()*+,;=%:[\]-]*$/

export function checkFraming(request: FastifyRequest): Refusal | undefined {
  const { host } = request.raw.headers
  if (host === undefined) {
    return request.raw.httpVersion === '1.0' ? undefined : malformed('The Host header is missing.')
  }
  if (!HOST.test(host)) return malformed(`The Host header is not a host name: ${JSON.stringify(host)}.`)
  if (cameTwice(request, 'host')) return malformed('The Host header came twice.')
  return undefined
}

function malformed(message: string): Refusal {
  return { code: 'malformed_request', message }
}

// A real HTTP server that misbehaves as a test tells it to, for what the service itself never does.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { OPERATIONS } from '../../src/contract/operations.ts'
import { type CallOptions, type OperationId, Petstore, type PetstoreOptions } from '../src/petstore.ts'

export interface OddServer extends AsyncDisposable {
  /** Ends in /v1. */
  baseUrl: string
  /** What came in, in order. */
  requests: IncomingMessage[]
}

export type Respond = (response: ServerResponse, request: IncomingMessage) => void

/** The responses are given in turn, the last one to all further requests. */
export async function startOddServer(...responses: Respond[]): Promise<OddServer> {
  const requests: IncomingMessage[] = []
  const server = createServer((request, response) => {
    requests.push(request)
    const respond = responses[requests.length - 1] ?? responses.at(-1)!
    respond(response, request)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

export const KEY = 'pets_test_0123456789012345678901234567890123456'

/** A response with this status, body and headers; JSON unless the headers say otherwise. */
export function sending(status: number, body: string, headers: Record<string, string> = {}): Respond {
  return (response) =>
    response.writeHead(status, { 'Content-Type': 'application/json', 'Request-Id': 'odd-1', ...headers }).end(body)
}

/** The answer to every request while the database of the service is away. */
export function unavailable(retryAfter?: string): Respond {
  const body = '{"code":"service_unavailable","message":"The database is unavailable.","status":503}'
  return sending(503, body, retryAfter === undefined ? {} : { 'Retry-After': retryAfter })
}

/** A client with KEY; without a `baseUrl`, for a `fetch` of the test. */
export function newClient(options: Partial<PetstoreOptions>): Petstore {
  return new Petstore({ apiKey: KEY, baseUrl: 'http://a.example/v1', onDeprecation: () => {}, ...options })
}

/** Calls a method with the examples of its operation. */
export async function callExample(petstore: Petstore, id: OperationId, options: CallOptions = {}): Promise<unknown> {
  const { parameters, body } = OPERATIONS.find((operation) => operation.id === id)!
  const given = parameters.filter((parameter) => parameter.in === 'path').map(({ example }) => example)
  if (body !== undefined) given.push(body.example)
  else if (parameters.some((parameter) => parameter.in === 'query')) given.push({})
  return (petstore[id] as (...given: unknown[]) => PromiseLike<unknown>).call(petstore, ...given, options)
}

export const PET = '{"id":1,"name":"Rex","categoryId":3,"status":"available"}'

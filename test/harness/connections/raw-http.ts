// HTTP over a raw socket, for requests that no HTTP client would send.
import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { ERRORS, type ErrorBody, type ErrorCode } from '../../../src/contract/errors.ts'
import { until } from '../until.ts'

export interface RawAnswer {
  status: number
  headers: Map<string, string>
  body: string
}

/** Reads the status line and headers of an answer, and their length. Returns undefined if they have not arrived completely. */
export function readHead(received: string): (Omit<RawAnswer, 'body'> & { length: number }) | undefined {
  const end = received.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const [first = '', ...lines] = received.slice(0, end).split('\r\n')
  const headers = new Map<string, string>()
  for (const line of lines) {
    const name = line.split(':', 1)[0]!.toLowerCase()
    const value = line.slice(line.indexOf(':') + 1).trim()
    headers.set(name, headers.has(name) ? `${headers.get(name)}, ${value}` : value)
  }
  return { status: Number(/^HTTP\/1\.1 (\d{3}) [A-Z]/.exec(first)?.[1]), headers, length: end + 4 }
}

export class RawConnection implements Disposable {
  readonly socket: Socket
  #received = ''
  #closed = false

  /** With `allowHalfOpen` the client can continue to send after the server has ended its side. */
  constructor(url: string, { allowHalfOpen = false } = {}) {
    const { hostname, port } = new URL(url)
    this.socket = connect({ port: Number(port), host: hostname, allowHalfOpen })
    this.socket.on('data', (bytes) => {
      this.#received += bytes.toString('latin1')
    })
    // A server may end a connection with a reset.
    this.socket.on('error', () => {})
    this.socket.on('close', () => {
      this.#closed = true
    })
  }

  send(bytes: string | Buffer): void {
    this.socket.write(bytes)
  }

  /** Returns the next answer; rejects if none arrives in time, or before the connection is closed. Cannot read answers to HEAD. */
  async answer(withinMs = 120_000): Promise<RawAnswer> {
    const answer = await this.#until(() => this.#takeAnswer() ?? (this.#closed ? null : undefined), withinMs)
    assert.ok(answer, `no answer came, only ${JSON.stringify(this.#received)}`)
    return answer
  }

  /** Sends a request and returns its answer. */
  ask(bytes: string | Buffer): Promise<RawAnswer> {
    this.send(bytes)
    return this.answer()
  }

  /** Returns the statuses of the next answers. */
  async statuses(count: number): Promise<number[]> {
    const statuses: number[] = []
    while (statuses.length < count) statuses.push((await this.answer()).status)
    return statuses
  }

  /**
   * Resolves when the server has closed the connection; rejects if an unread answer arrived before that. By default it waits less
   * than the service's `lingerTimeout` of 10 s, which would close the connection that a fault leaves open.
   */
  async closed(withinMs = 9000): Promise<void> {
    assert.ok(await this.#until(() => this.#closed || undefined, withinMs), 'the connection is still open')
    assert.equal(this.#received, '')
  }

  [Symbol.dispose](): void {
    this.socket.destroy()
  }

  async #until<T>(look: () => T | undefined, withinMs: number): Promise<T | undefined> {
    for (const end = performance.now() + withinMs; performance.now() < end;) {
      const found = look()
      if (found !== undefined) return found
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
    return look()
  }

  #takeAnswer(): RawAnswer | undefined {
    const head = readHead(this.#received)
    if (head === undefined) return undefined
    const { status, headers, length } = head
    const end = length + Number(headers.get('content-length') ?? 0)
    if (this.#received.length < end) return undefined
    const body = Buffer.from(this.#received.slice(length, end), 'latin1').toString()
    this.#received = this.#received.slice(end)
    return { status, headers, body }
  }
}

export const REX = '{"name":"Rex","categoryId":1}'

export function keyHeader(key: string): string {
  return `Authorization: Bearer ${key}\r\n`
}

/** A request without a body; `headers` are whole lines. */
export function get(path: string, headers = ''): string {
  return `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`
}

export const LIVEZ = get('/livez')

export function list(key: string, query = ''): string {
  return get(`/v1/pets${query}`, keyHeader(key))
}

/** A whole create. */
export function create(key: string, body = REX, headers = ''): string {
  return createHead(key, body, headers) + body
}

/** The head of a create with this body, which is sent apart. */
export function createHead(key: string, body: string, headers = ''): string {
  return `POST /v1/pets HTTP/1.1\r\nHost: localhost\r\n${keyHeader(key)}${headers}Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n`
}

/** Resolves when connections are refused: the service has stopped listening. */
export function untilRefused(url: string): Promise<void> {
  return until(async () => {
    using connection = new RawConnection(url)
    const { promise, resolve } = Promise.withResolvers<boolean>()
    connection.socket
      .once('connect', () => resolve(false))
      .once('error', ({ code }: NodeJS.ErrnoException) => resolve(code === 'ECONNREFUSED'))
      .setTimeout(5000, () => resolve(false))
    return await promise
  }, 'connections are refused')
}

/** Asserts that this is a complete error answer with this code, and returns its message. */
export function expectRawError({ status, headers, body }: RawAnswer, code: ErrorCode): string {
  assert.equal(status, ERRORS[code].status, body)
  assert.equal(headers.get('content-type'), 'application/json')
  assert.equal(headers.get('x-content-type-options'), 'nosniff')
  for (const name of ['request-id', 'date', 'content-length']) assert.ok(headers.get(name), name)
  assert.ok(headers.get('link')?.includes(`/docs/errors#${code}>; rel="help"`), 'it links to its documentation')
  const { message, ...rest } = JSON.parse(body) as ErrorBody
  assert.deepEqual(rest, { code, status })
  assert.match(message, /^[A-Z].*\.$/s)
  return message
}

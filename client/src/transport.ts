// Calls an operation: sends the request, and retries it within the deadline of the call.
import { type Answer, readAnswer } from './answer.ts'
import { OPERATIONS, type OperationId } from './contract.ts'
import { Deadline } from './deadline.ts'
import { type DeprecationNotice, readDeprecation } from './deprecation.ts'
import { NetworkError, PetstoreError, UnexpectedResponseError } from './errors.ts'
import { Redactor } from './redactor.ts'
import { mayBeDone, retryDelay } from './retry.ts'

export interface CallOptions {
  /** Aborts the call, which then rejects with the signal's reason. */
  signal?: AbortSignal | undefined
  /** How many milliseconds the call may take, including all attempts and the delays between them. */
  timeout?: number | undefined
}

export interface TransportSettings {
  baseUrl: string
  timeout: number
  maxRetries: number
  fetch: typeof fetch
  onDeprecation: (notice: DeprecationNotice) => void
}

export interface Call<T> {
  /** Relative to the base address. */
  path: string
  headers?: Record<string, string>
  body?: string
  /** Returns undefined if the answer is not a result of the operation; `status === 204 || undefined` for one without content. */
  parse: (answer: Answer) => T | undefined
}

export class Transport {
  // A #private field: neither console.log nor JSON.stringify shows the key.
  readonly #apiKey: string
  readonly #redactor: Redactor
  readonly #settings: TransportSettings
  readonly #reported = new Set<OperationId>()

  constructor(apiKey: string, settings: TransportSettings) {
    this.#apiKey = apiKey
    this.#redactor = new Redactor(apiKey)
    this.#settings = settings
  }

  async call<T>(operation: OperationId, call: Call<T>, options: CallOptions): Promise<T> {
    const { timeout, maxRetries } = this.#settings
    const { method, repeat }: { method: string; repeat: string } = OPERATIONS[operation]
    // All attempts of a call send the same Idempotency-Key, so the service adds once however many of them it receives.
    const isRepeatable = repeat === 'with key' ? call.headers?.['Idempotency-Key'] !== undefined : repeat !== 'never'
    let isPerhapsDone = false
    const deadline = new Deadline(operation, options.timeout ?? timeout, options.signal)
    try {
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await this.#attempt(operation, call, deadline.signal)
        } catch (error) {
          deadline.signal.throwIfAborted()
          if (!(error instanceof PetstoreError)) throw error
          // What is to be removed is gone, most likely by an earlier attempt whose answer was lost.
          if (method === 'DELETE' && isPerhapsDone && isNotFound(error)) return undefined as T
          const delay = retryDelay({ error, isRepeatable, attempt, maxRetries, timeLeft: deadline.timeLeft })
          if (delay === undefined) throw this.#redactor.error(error)
          isPerhapsDone ||= mayBeDone(error)
          await deadline.wait(delay)
        }
      }
    } finally {
      deadline.dispose()
    }
  }

  async #attempt<T>(operation: OperationId, { path, headers, body, parse }: Call<T>, signal: AbortSignal): Promise<T> {
    const { method } = OPERATIONS[operation]
    const url = new URL(this.#settings.baseUrl + path)
    const { response, text } = await this.#fetch(url, {
      method,
      // Made outside #fetch's try, so that an invalid header value is a TypeError for the caller, not a NetworkError.
      headers: new Headers({ Accept: 'application/json', Authorization: `Bearer ${this.#apiKey}`, ...headers }),
      // Follows no redirect: a create would become a GET, and another origin must not get the key.
      redirect: 'manual',
      signal,
      ...(body !== undefined && { body }),
    })
    this.#reportDeprecation(operation, url, response.headers)
    const answer = readAnswer({ method, url, response, text })
    const requestId = this.#redactor.optional(answer.requestId)
    const result = parse({ ...answer, requestId })
    if (result !== undefined) return result
    const message = `${method} ${url.href} answered ${response.status} with ${answer.value === undefined ? 'no content, which' : 'JSON that'} is not a result of ${operation}: check baseUrl.`
    throw new UnexpectedResponseError({ code: 'unexpected_response', message, status: response.status, requestId })
  }

  async #fetch(url: URL, init: RequestInit): Promise<{ response: Response; text: string }> {
    // Calls fetch as a plain function: a browser's fetch refuses the settings as `this`.
    const { fetch } = this.#settings
    try {
      const response = await fetch(url, init)
      return { response, text: await readText(response) }
    } catch (cause) {
      const message = `${init.method} ${url.href} got no complete answer: ${reasonOf(cause)}.`
      throw new NetworkError({ code: 'network_error', message, cause })
    }
  }

  #reportDeprecation(operation: OperationId, url: URL, headers: Headers): void {
    const notice = this.#reported.has(operation) ? undefined : readDeprecation(operation, url, headers)
    if (notice === undefined) return
    this.#reported.add(operation)
    this.#settings.onDeprecation(this.#redactor.notice(notice))
  }
}

/** Whether the service knows the address, but not what it names. */
function isNotFound({ status, code }: PetstoreError): boolean {
  return status === 404 && code.endsWith('_not_found')
}

/** The most that is read of an answer, in characters; a page of 100 animals has a tenth of it at most. */
const LONGEST_ANSWER = 4 * 1024 * 1024

/** Cuts off what is longer, so that an answer without end becomes malformed JSON, not a full memory. */
async function readText(response: Response): Promise<string> {
  // A `fetch` of the caller may return a body of another kind.
  if (!(response.body instanceof ReadableStream)) return response.text()
  const reader = response.body.getReader()
  const decoder = new TextDecoder()
  let text = ''
  while (text.length < LONGEST_ANSWER) {
    const { done, value } = await reader.read()
    text += decoder.decode(value, { stream: !done })
    if (done) return text
  }
  await reader.cancel()
  return text
}

/** Returns the message of an error with that of its cause: Node's fetch says only "fetch failed", and the cause says why. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { cause } = error
  const detail =
    cause instanceof Error ? cause.message || ('code' in cause ? String(cause.code) : cause.name) : undefined
  return detail === undefined ? error.message : `${error.message} (${detail})`
}

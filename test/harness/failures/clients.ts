// Clients that add animals continuously, and retry as the documentation advises: with the same Idempotency-Key.
import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import type { Random } from '../random.ts'
import { until } from '../until.ts'

/** A create that was answered 201. */
export interface Acknowledged {
  name: string
  id: string
  /** When the answer arrived, and after how many attempts. */
  at: number
  tries: number
}

/** A failed attempt of a create: an answer other than 201, or an error. */
export interface Setback {
  /** Status and code of the answer, or the code of the error. */
  kind: string
  /** When it occurred, and how long after the request was sent. */
  at: number
  ms: number
}

export interface ClientsOptions {
  /** The number of clients. */
  count: number
  /** How long a client retries before it gives up and counts the create as failed. */
  patienceMs: number
  random?: Random
  /** How long a client waits after each create. */
  restMs?: number
  /** The prefix of the animals' names. */
  prefix?: string
}

const FIRST_PAUSE_MS = 20
const LONGEST_PAUSE_MS = 250
/** Longer than the service takes to answer 503 while its database hangs. */
const ANSWER_WITHIN_MS = 15_000

export class Clients {
  readonly acknowledged: Acknowledged[] = []
  /** Creates that a client gave up, each with its last error. */
  readonly failed: string[] = []
  readonly setbacks: Setback[] = []
  readonly #url: string
  readonly #key: string
  readonly #options: Required<ClientsOptions>
  #stopped = false
  readonly #done: Promise<unknown>

  constructor(url: string, key: string, options: ClientsOptions) {
    this.#url = url
    this.#key = key
    this.#options = { random: Math.random, restMs: 0, prefix: 'Animal', ...options }
    this.#done = Promise.all(Array.from({ length: options.count }, (_, client) => this.#work(client)))
  }

  /** Stops the clients; resolves when each has finished its running create. */
  async stop(): Promise<void> {
    this.#stopped = true
    await this.#done
  }

  /** Resolves when a create that began after this call was acknowledged: at most one of each client was running before it. */
  async nextCreate(): Promise<void> {
    const enough = this.acknowledged.length + this.#options.count
    await until(() => this.acknowledged.length > enough, 'a create succeeds again', 60_000).catch((error: Error) => {
      const last = this.setbacks.slice(-5).map(({ kind, ms }) => `${kind} after ${Math.round(ms)} ms`)
      throw new Error(`${error.message}; the last setbacks: ${last.join(', ') || 'none'}`, { cause: error })
    })
  }

  async #work(client: number): Promise<void> {
    const { prefix, restMs } = this.#options
    for (let number = 0; !this.#stopped; number += 1) {
      await this.#add(`${prefix} ${number} of client ${client}`)
      if (restMs > 0) await setTimeout(restMs)
    }
  }

  async #add(name: string): Promise<void> {
    const headers = {
      Authorization: `Bearer ${this.#key}`,
      'Content-Type': 'application/json',
      'Idempotency-Key': randomUUID(),
    }
    const body = JSON.stringify({ name, categoryId: 1 })
    const deadline = performance.now() + this.#options.patienceMs
    for (let tries = 1, pause = FIRST_PAUSE_MS; ; tries += 1, pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      const sentAt = performance.now()
      const answer = await post(`${this.#url}/v1/pets`, headers, body)
      if ('id' in answer) {
        this.acknowledged.push({ name, id: answer.id, at: performance.now(), tries })
        return
      }
      const at = performance.now()
      this.setbacks.push({ kind: answer.setback, at, ms: at - sentAt })
      if (at > deadline) {
        this.failed.push(`${name}: ${answer.setback}`)
        return
      }
      await setTimeout(pause * (0.5 + this.#options.random()))
    }
  }
}

async function post(
  url: string,
  headers: Record<string, string>,
  body: string,
): Promise<{ id: string } | { setback: string }> {
  try {
    const response = await fetch(url, { method: 'POST', headers, body, signal: AbortSignal.timeout(ANSWER_WITHIN_MS) })
    const answer = (await response.json()) as { id?: unknown; code?: unknown }
    return response.status === 201
      ? { id: String(answer.id) }
      : { setback: `${response.status} ${String(answer.code)}` }
  } catch (error) {
    const { name, cause } = error as Error & { cause?: { code?: string } }
    return { setback: cause?.code ?? name }
  }
}

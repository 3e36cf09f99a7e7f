// Clients that add animals without pause, and try again as the documentation advises: with the same Idempotency-Key.
import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import type { Random } from '../harness/random.ts'
import { until } from '../harness/until.ts'

/** A create that was answered 201. */
export interface Acknowledged {
  name: string
  id: string
  /** When the answer came, and how many tries it took. */
  at: number
  tries: number
}

/** An answer or an error that led to another try. */
export interface Setback {
  /** Status and code of the answer, or the code of the error. */
  kind: string
  /** When it came, and how long after the request. */
  at: number
  ms: number
}

export interface Crowd {
  /** How many clients. */
  count: number
  /** How long a client goes on trying before it calls a create failed. */
  patienceMs: number
  random?: Random
  /** How long a client rests after each create. */
  restMs?: number
  /** What the names of the animals begin with. */
  prefix?: string
}

const FIRST_PAUSE_MS = 20
const LONGEST_PAUSE_MS = 250
/** Longer than the service may take to answer 503 while its database hangs. */
const ANSWER_WITHIN_MS = 15_000

export class Clients {
  readonly acknowledged: Acknowledged[] = []
  /** Creates given up on, with the last reason. */
  readonly failed: string[] = []
  readonly setbacks: Setback[] = []
  readonly #url: string
  readonly #key: string
  readonly #crowd: Required<Crowd>
  #stopped = false
  readonly #done: Promise<unknown>

  constructor(url: string, key: string, crowd: Crowd) {
    this.#url = url
    this.#key = key
    this.#crowd = { random: Math.random, restMs: 0, prefix: 'Animal', ...crowd }
    this.#done = Promise.all(Array.from({ length: crowd.count }, (_, client) => this.#work(client)))
  }

  /** Lets every client finish what it has begun. */
  async stop(): Promise<void> {
    this.#stopped = true
    await this.#done
  }

  /** Resolves when a create that began after this call may have been acknowledged. */
  async nextCreate(): Promise<void> {
    const enough = this.acknowledged.length + this.#crowd.count
    await until(() => this.acknowledged.length > enough, 'a create succeeds again', 60_000)
  }

  async #work(client: number): Promise<void> {
    const { prefix, restMs } = this.#crowd
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
    const deadline = performance.now() + this.#crowd.patienceMs
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
      await setTimeout(pause * (0.5 + this.#crowd.random()))
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

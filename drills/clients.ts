// Clients that add animals without pause, and try again as the documentation advises: with the same Idempotency-Key.
import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { until } from './processes.ts'
import type { Random } from './random.ts'

/** A create that was answered 201. */
export interface Acknowledged {
  name: string
  id: string
  /** When the answer came, and how many tries it took. */
  at: number
  tries: number
}

const FIRST_PAUSE_MS = 20
const LONGEST_PAUSE_MS = 250
const ANSWER_WITHIN_MS = 5000

export class Clients {
  readonly acknowledged: Acknowledged[] = []
  /** Creates given up on, with the last reason. */
  readonly failed: string[] = []
  /** Answers and errors that led to another try, by kind. */
  readonly setbacks = new Map<string, number>()
  readonly #url: string
  readonly #key: string
  readonly #count: number
  readonly #patienceMs: number
  readonly #random: Random
  #stopped = false
  readonly #done: Promise<unknown>

  /** `patienceMs`: how long a client goes on trying before it calls a create failed. */
  constructor(url: string, key: string, count: number, patienceMs: number, random: Random = Math.random) {
    this.#url = url
    this.#key = key
    this.#count = count
    this.#patienceMs = patienceMs
    this.#random = random
    this.#done = Promise.all(Array.from({ length: count }, (_, client) => this.#work(client)))
  }

  /** Lets every client finish what it has begun. */
  async stop(): Promise<void> {
    this.#stopped = true
    await this.#done
  }

  /** Resolves when a create that began after this call may have been acknowledged. */
  async nextCreate(): Promise<void> {
    const enough = this.acknowledged.length + this.#count
    await until('a create succeeds again', async () => this.acknowledged.length > enough, 60_000)
  }

  async #work(client: number): Promise<void> {
    for (let number = 0; !this.#stopped; number += 1) await this.#add(`Animal ${number} of client ${client}`)
  }

  async #add(name: string): Promise<void> {
    const headers = { Authorization: `Bearer ${this.#key}`, 'Content-Type': 'application/json', 'Idempotency-Key': randomUUID() }
    const body = JSON.stringify({ name, categoryId: 1 })
    const deadline = performance.now() + this.#patienceMs
    for (let tries = 1, pause = FIRST_PAUSE_MS; ; tries += 1, pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      const answer = await post(`${this.#url}/v1/pets`, headers, body)
      if ('id' in answer) {
        this.acknowledged.push({ name, id: answer.id, at: performance.now(), tries })
        return
      }
      this.setbacks.set(answer.setback, (this.setbacks.get(answer.setback) ?? 0) + 1)
      if (performance.now() > deadline) {
        this.failed.push(`${name}: ${answer.setback}`)
        return
      }
      await setTimeout(pause * (0.5 + this.#random()))
    }
  }
}

async function post(url: string, headers: Record<string, string>, body: string): Promise<{ id: string } | { setback: string }> {
  try {
    const response = await fetch(url, { method: 'POST', headers, body, signal: AbortSignal.timeout(ANSWER_WITHIN_MS) })
    const answer = (await response.json()) as { id?: unknown; code?: unknown }
    return response.status === 201 ? { id: String(answer.id) } : { setback: `${response.status} ${String(answer.code)}` }
  } catch (error) {
    const { name, cause } = error as Error & { cause?: { code?: string } }
    return { setback: cause?.code ?? name }
  }
}

// Clients that record what they wrote to and read from several instances, and report contradictions.
import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { below, oneOf, type Random } from '../../test/harness/random.ts'

const TRY_AGAIN_MS = 50
const ANSWER_WITHIN_MS = 5000
const PATIENCE_MS = 60_000
const PAGE = 50

interface Pet {
  id: number
  name: string
}

interface Create {
  id: number
  name: string
  began: number
  acknowledged: number
}

export class Historian {
  readonly creates: Create[] = []
  readonly anomalies: string[] = []
  reads = 0
  walks = 0
  readonly #urls: readonly string[]
  readonly #key: string
  readonly #random: Random
  #stopped = false
  readonly #done: Promise<unknown>

  /** Starts one client that pages through the list, and `writers` clients that add animals and read each one back. */
  constructor(urls: readonly string[], key: string, writers: number, random: Random) {
    this.#urls = urls
    this.#key = key
    this.#random = random
    this.#done = Promise.all([...Array.from({ length: writers }, (_, writer) => this.#write(writer)), this.#walk()])
  }

  /** Stops the clients, and checks that ids grew in the order of the creates. */
  async stop(): Promise<void> {
    this.#stopped = true
    await this.#done
    this.anomalies.push(...outOfOrder(this.creates))
  }

  /** Adds animals. Right after its answer, each must be readable from any instance, by its id and in the list. */
  async #write(writer: number): Promise<void> {
    for (let number = 0; !this.#stopped; number += 1) {
      const name = `Animal ${number} of writer ${writer}`
      const began = performance.now()
      const { id } = (await this.#ask('/v1/pets', JSON.stringify({ name, categoryId: 1 }))).body as Pet
      this.creates.push({ id, name, began, acknowledged: performance.now() })
      const { status, body } = await this.#ask(`/v1/pets/${id}`)
      if (status !== 200 || (body as Pet).name !== name)
        this.anomalies.push(`${name}, ${id}: read back as ${status} ${JSON.stringify(body)}`)
      const page = (await this.#ask('/v1/pets?limit=100')).body as Pet[]
      if (!page.some((pet) => pet.id === id) && page.at(-1)!.id < id)
        this.anomalies.push(`${name}, ${id}: not in the list right after`)
      this.reads += 2
      await setTimeout(below(20, this.#random))
    }
  }

  /** Pages through the list: ids must descend without repeats, and every animal acknowledged before must be listed. */
  async #walk(): Promise<void> {
    do {
      const before = new Set(this.creates.map(({ id }) => id))
      let last = Number.POSITIVE_INFINITY
      for (let next: string | undefined = `/v1/pets?limit=${PAGE}`; next !== undefined;) {
        const { body, link } = await this.#ask(next)
        for (const { id } of body as Pet[]) {
          if (id >= last) this.anomalies.push(`a walk met ${id} after ${last}`)
          last = id
          before.delete(id)
        }
        next = link
      }
      if (before.size > 0) this.anomalies.push(`a walk missed ${[...before].join(', ')}`)
      this.walks += 1
      await setTimeout(TRY_AGAIN_MS)
    } while (!this.#stopped)
  }

  /** Sends a request to a random instance; retries failures, a create with the same Idempotency-Key. */
  async #ask(path: string, body?: string): Promise<{ status: number; body: unknown; link: string | undefined }> {
    const headers = {
      Authorization: `Bearer ${this.#key}`,
      ...(body !== undefined && { 'Content-Type': 'application/json', 'Idempotency-Key': randomUUID() }),
    }
    for (const deadline = performance.now() + PATIENCE_MS; ;) {
      try {
        const signal = AbortSignal.timeout(ANSWER_WITHIN_MS)
        const response = await fetch(oneOf(this.#urls, this.#random) + path, {
          headers,
          signal,
          ...(body !== undefined && { method: 'POST', body }),
        })
        const link = /<([^>]+)>; rel="next"/.exec(response.headers.get('link') ?? '')?.[1]
        const answer: unknown = await response.json()
        if (response.status < 500) return { status: response.status, body: answer, link }
      } catch {
        // The instance was killed, or is still starting.
      }
      if (performance.now() > deadline) throw new Error(`no answer within ${PATIENCE_MS / 1000} s: ${path}`)
      await setTimeout(TRY_AGAIN_MS)
    }
  }
}

/** Returns the creates that began after another was acknowledged but do not have a greater id. */
export function outOfOrder(creates: readonly Omit<Create, 'name'>[]): string[] {
  const byAcknowledgement = creates.toSorted((a, b) => a.acknowledged - b.acknowledged)
  const anomalies: string[] = []
  let greatest = 0
  let next = 0
  for (const { id, began } of creates.toSorted((a, b) => a.began - b.began)) {
    for (; next < byAcknowledgement.length && byAcknowledgement[next]!.acknowledged < began; next += 1)
      greatest = Math.max(greatest, byAcknowledgement[next]!.id)
    if (id <= greatest) anomalies.push(`${id} was created after ${greatest}`)
  }
  return anomalies
}

// Clients that keep their connections open and never retry, so that every request that a restart breaks is counted.
import { Agent, request } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { type Random, seeded } from '../random.ts'
import type { Acknowledged } from './clients.ts'

const ANSWER_WITHIN_MS = 30_000
const LONGEST_PAUSE_MS = 50

export class Traffic {
  readonly acknowledged: Acknowledged[] = []
  /** Requests that got no answer, or a status other than 200 and 201. */
  readonly broken: string[] = []
  answered = 0
  slowestMs = 0
  readonly #url: string
  readonly #key: string
  readonly #seed: number
  readonly #random: Random
  readonly #longestPauseMs: number
  readonly #agent = new Agent({ keepAlive: true })
  #stopped = false
  readonly #done: Promise<unknown>

  constructor(url: string, key: string, clients: number, seed: number, longestPauseMs = LONGEST_PAUSE_MS) {
    this.#url = `${url}/v1/pets`
    this.#key = key
    this.#seed = seed
    this.#random = seeded(seed)
    this.#longestPauseMs = longestPauseMs
    this.#done = Promise.all(Array.from({ length: clients }, (_, client) => this.#work(client)))
  }

  /** Stops the clients; resolves when each has finished its running request. */
  async stop(): Promise<void> {
    this.#stopped = true
    await this.#done
    this.#agent.destroy()
  }

  /** Adds an animal, lists animals and fetches the one that it added, in turn. */
  async #work(client: number): Promise<void> {
    let last = ''
    for (let number = 0; !this.#stopped; number += 1) {
      const name = `Animal ${number} of client ${client}, ${this.#seed}`
      const started = performance.now()
      try {
        const { status, body } =
          number % 3 === 0
            ? await this.#send('', JSON.stringify({ name, categoryId: 1 }))
            : await this.#send(number % 3 === 1 ? '?status=available' : last)
        if (status === 201) {
          const id = String((JSON.parse(body) as { id: number }).id)
          last = `/${id}`
          this.acknowledged.push({ name, id, at: performance.now(), tries: 1 })
        }
        if (status === 200 || status === 201) this.answered += 1
        else this.broken.push(`${status} ${body}`)
      } catch (error) {
        this.broken.push(String((error as NodeJS.ErrnoException).code ?? error))
      }
      this.slowestMs = Math.max(this.slowestMs, performance.now() - started)
      await setTimeout(this.#random() * this.#longestPauseMs)
    }
  }

  /** Sends a POST with the body, or a GET without one. */
  #send(path: string, body?: string): Promise<{ status: number; body: string }> {
    return new Promise((resolve, reject) => {
      const headers = {
        Authorization: `Bearer ${this.#key}`,
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
      }
      const method = body === undefined ? 'GET' : 'POST'
      const sent = request(
        this.#url + path,
        { method, headers, agent: this.#agent, timeout: ANSWER_WITHIN_MS },
        (response) => {
          let text = ''
          response.setEncoding('utf8').on('data', (part: string) => (text += part))
          response.on('end', () => resolve({ status: response.statusCode!, body: text })).on('error', reject)
        },
      )
      sent.on('timeout', () => sent.destroy(new Error('no answer in time'))).on('error', reject)
      sent.end(body)
    })
  }
}

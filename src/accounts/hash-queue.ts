// The queue for password hashes: a few at a time, a bounded number waiting, and none for a client that has left.

/** At 30 to 100 ms for each, the last one waits for a few seconds at most. */
export const HASHES_WAITING = 64

/** So many hashes are waiting that one more would take too long; the same call may work later. */
export class TooManyHashes extends Error {
  override name = 'TooManyHashes'
}

export class HashQueue {
  /** Each hash takes 19 MiB and a thread of Node's pool of four, which syncs of the database and file access need too. */
  atATime = 2
  #running = 0
  /** In the order in which they came; each starts the one that waits. */
  readonly #waiting = new Set<() => void>()

  /** Rejects with `TooManyHashes` if the queue is full, and with the signal's reason if that aborts before it is its turn. */
  async run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted()
    if (this.#running < this.atATime) this.#running += 1
    else await this.#turn(signal)
    try {
      return await work()
    } finally {
      const [next] = this.#waiting
      if (next === undefined) this.#running -= 1
      else next()
    }
  }

  #turn(signal: AbortSignal | undefined): Promise<void> {
    if (this.#waiting.size >= HASHES_WAITING) throw new TooManyHashes(`${HASHES_WAITING} password hashes are waiting`)
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiting.delete(start)
        reject(signal!.reason as Error)
      }
      const start = () => {
        this.#waiting.delete(start)
        signal?.removeEventListener('abort', leave)
        resolve()
      }
      this.#waiting.add(start)
      signal?.addEventListener('abort', leave, { once: true })
    })
  }
}

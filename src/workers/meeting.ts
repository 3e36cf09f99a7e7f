// Writes of several workers meet before they go to the store, and so share one commit. The first wait a moment for the others.

/** Who has written this recently is waited for. */
const RECENT_MS = 10

/** How long the first may wait. A worker that writes alone never does. */
const WAIT_MS = 1

export class Meeting {
  /** When each worker last wrote. */
  readonly #lastWrite = new Map<object, number>()
  readonly #here = new Set<object>()
  #beginning: PromiseWithResolvers<void> | undefined
  #timer: NodeJS.Timeout | undefined

  /** Resolves when every worker that writes now has joined, or the time is up. */
  join(worker: object): Promise<void> {
    const now = performance.now()
    this.#lastWrite.set(worker, now)
    this.#here.add(worker)
    this.#beginning ??= this.#call()
    const { promise } = this.#beginning
    if (this.#isComplete(now)) this.#begin()
    return promise
  }

  #isComplete(now: number): boolean {
    return this.#lastWrite.entries().every(([worker, at]) => this.#here.has(worker) || now - at > RECENT_MS)
  }

  #call(): PromiseWithResolvers<void> {
    this.#timer = setTimeout(() => this.#begin(), WAIT_MS)
    return Promise.withResolvers()
  }

  #begin(): void {
    clearTimeout(this.#timer)
    this.#beginning!.resolve()
    this.#beginning = undefined
    this.#here.clear()
  }

  leave(worker: object): void {
    this.#lastWrite.delete(worker)
  }
}

// The connections of all processes of an instance, counted in the first: the limit is the instance's.

interface Count {
  open: number
  /** What the process was told last. */
  elsewhere: number
  tell: (openElsewhere: number) => void
}

export class ConnectionCounts {
  readonly #counts = new Map<unknown, Count>()
  #scheduled = false

  /** From now on `tell` is called with the number of connections that the other processes have open, when that changes. */
  add(process: unknown, tell: Count['tell']): void {
    this.#counts.set(process, { open: 0, elsewhere: 0, tell })
    this.#schedule()
  }

  report(process: unknown, open: number): void {
    const count = this.#counts.get(process)
    if (count !== undefined) count.open = open
    this.#schedule()
  }

  remove(process: unknown): void {
    this.#counts.delete(process)
    this.#schedule()
  }

  /** Tells all at once what was reported in a turn of the event loop. */
  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      const all = this.#counts
        .values()
        .map(({ open }) => open)
        .reduce((sum, open) => sum + open, 0)
      for (const count of this.#counts.values()) {
        const elsewhere = all - count.open
        if (elsewhere === count.elsewhere) continue
        count.elsewhere = elsewhere
        count.tell(elsewhere)
      }
    })
  }
}

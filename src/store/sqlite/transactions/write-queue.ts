// The writes that wait for a commit, and which of them share one: those that arrive in one turn of the event loop, or within a few
// milliseconds after a shared commit.
import { setImmediate, setTimeout } from 'node:timers/promises'
import { StoreBusy } from '../../store.ts'
import { asStoreFailure } from '../failures.ts'

/** How many writes may wait. At 10,000 writes a second the last one waits for a tenth of a second, unless another process
 * holds the lock. */
const QUEUE_LIMIT = 1000

/**
 * The clients that were just answered are likely to write again, so the next commit waits for them: for as long as the last
 * commit and sync took, within these bounds. Otherwise each commit would serve half of the clients, and twice as many be made.
 */
const NEXT_WRITES_WAIT_MS = { least: 1, most: 5 }

export interface Write {
  item: unknown
  /** Writes the items of a batch that have this function, and returns the result of each. */
  all: (items: readonly never[]) => readonly unknown[]
  resolve: (result: never) => void
  reject: (error: unknown) => void
  /** When to stop waiting for another process's lock. */
  deadline: number
}

export interface Written {
  write: Write
  result: unknown
}

export class WriteQueue {
  #writes: Write[] = []
  /** How many writes the next batch is likely to have by `until`: those that wait, and one for each that was just answered. */
  #expected = { writes: 0, until: 0 }
  #onExpectedArrived = () => {}

  get length(): number {
    return this.#writes.length
  }

  add(write: Write): void {
    if (this.#writes.length >= QUEUE_LIMIT) {
      write.reject(new StoreBusy(`${QUEUE_LIMIT} writes wait for the database`))
      return
    }
    this.#writes.push(write)
    if (this.#writes.length === this.#expected.writes) this.#onExpectedArrived()
  }

  /** Queues writes again that met a lock; rejects those whose time is over. */
  putBack(batch: readonly Write[], lock: Error): void {
    const now = performance.now()
    for (const write of batch) {
      if (write.deadline > now) this.#writes.push(write)
      else write.reject(asStoreFailure(lock))
    }
  }

  takeAll(): Write[] {
    return this.#writes.splice(0)
  }

  /** Waits for more writes, which is nearly free: one commit and one sync serve them all. */
  async gather(): Promise<void> {
    const leftMs = this.#expected.until - performance.now()
    if (this.#writes.length >= this.#expected.writes || leftMs <= 0) return setImmediate()
    const arrived = Promise.withResolvers<void>()
    this.#onExpectedArrived = arrived.resolve
    await Promise.race([arrived.promise, setTimeout(leftMs)])
  }

  /** Expects the clients of a shared batch, which has taken `batchMs`, to write again. */
  expectNextOf({ length }: readonly Write[], batchMs: number): void {
    if (length < 2) return
    const { least, most } = NEXT_WRITES_WAIT_MS
    const until = performance.now() + Math.min(Math.max(batchMs, least), most)
    this.#expected = { writes: length + this.#writes.length, until }
  }
}

/** Writes the items that have the same function by one call. */
export function writeBatch(batch: readonly Write[]): Written[] {
  return [...Map.groupBy(batch, ({ all }) => all)].flatMap(([all, writes]) => {
    const results = all(writes.map(({ item }) => item as never))
    return writes.map((write, index) => ({ write, result: results[index] }))
  })
}

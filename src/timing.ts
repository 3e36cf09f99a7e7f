// Time and the event loop: batches what arrives in one turn, divides long work among turns, and bounds how long a caller waits. A
// single item waits for one `setImmediate`, never for a timer.
import { setImmediate as nextTurn } from 'node:timers/promises'

/**
 * Returns a function that adds an item. Calls `take` with the items of a turn, in the order of arrival, at most `most` at a
 * time. The rest waits for the following turns, so that many requests do not hold up new connections and the admin port. While
 * `mustWait` returns true, all wait for the next turn.
 */
export function gatherTurns<T>(
  take: (gathered: readonly T[]) => void,
  most: number,
  mustWait = () => false,
): (arrival: T) => void {
  const gathered: T[] = []
  const handOver = () => {
    if (mustWait()) {
      setImmediate(handOver)
      return
    }
    const next = gathered.splice(0, most)
    if (gathered.length > 0) setImmediate(handOver)
    take(next)
  }
  return (arrival) => {
    if (gathered.push(arrival) === 1) setImmediate(handOver)
  }
}

/** Returns a function that resolves with the result of its item; `all` is called like `take` of `gatherTurns`, and may return promises. */
export function together<T, R>(
  all: (gathered: readonly T[]) => Promise<readonly (R | Promise<R>)[]>,
  most: number,
): (item: T) => Promise<R> {
  const add = gatherTurns<PromiseWithResolvers<R> & { item: T }>((gathered) => {
    all(gathered.map(({ item }) => item)).then(
      (results) => gathered.forEach(({ resolve }, index) => resolve(results[index]!)),
      (error: unknown) => gathered.forEach(({ reject }) => reject(error)),
    )
  }, most)
  return (item) => {
    const added = { item, ...Promise.withResolvers<R>() }
    add(added)
    return added.promise
  }
}

/** How long the work of all callers of `inSlices` may take in one turn. */
const SLICE_MS = 5

let sliceEnd = 0
let lastSlice = Promise.resolve()

/**
 * Returns `work` of each item, in order. Other turns of the event loop come in between, however many callers there are. Rejects when the
 * signal aborts.
 */
export async function inSlices<T, R>(items: readonly T[], work: (item: T) => R, signal?: AbortSignal): Promise<R[]> {
  const results: R[] = []
  for (const item of items) {
    while (performance.now() >= sliceEnd) {
      signal?.throwIfAborted()
      await nextSlice()
    }
    results.push(work(item))
  }
  return results
}

/** Resolves in a turn of the caller's own, for work of some milliseconds: those that wait get theirs in the order of their calls. */
export function nextSlice(): Promise<void> {
  const begin = () => void (sliceEnd = performance.now() + SLICE_MS)
  return (lastSlice = lastSlice.then(() => nextTurn()).then(begin))
}

/** No answer came in time. Whether the call has taken effect, or still will, is unknown. */
export class Overdue extends Error {
  override name = 'Overdue'
  constructor(limitMs: number) {
    super(`no answer within ${limitMs} ms`)
  }
}

/** Rejects with `Overdue` if the promise has not settled in time; ignores its later result or rejection. */
export function withinTime<T>(promise: Promise<T>, limitMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Overdue(limitMs)), limitMs)
    promise.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

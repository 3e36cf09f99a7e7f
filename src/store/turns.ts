// Batches items that arrive in the same turn of the event loop. A single item waits for one `setImmediate`, never for a timer.

/**
 * Returns a function that adds an item. Calls `take` with the items of a turn, in the order of arrival, at most `most()` at a
 * time. The rest waits for the following turns, so that many requests do not hold up new connections and the admin port.
 */
export function gatherTurns<T>(take: (gathered: readonly T[]) => void, most = () => Infinity): (arrival: T) => void {
  const gathered: T[] = []
  const handOver = () => {
    const next = gathered.splice(0, most())
    if (gathered.length > 0) setImmediate(handOver)
    take(next)
  }
  return (arrival) => {
    if (gathered.push(arrival) === 1) setImmediate(handOver)
  }
}

/** How many turns `whileGrowing` waits at most. */
const MOST_TURNS = 4

/** Calls `done` after the first turn in which the count did not grow, or after `turns` turns. */
export function whileGrowing(count: () => number, done: () => void, seen = 0, turns = MOST_TURNS): void {
  const now = count()
  if (now > seen && turns > 0) setImmediate(() => whileGrowing(count, done, now, turns - 1))
  else done()
}

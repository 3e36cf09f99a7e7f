// What arrives in one turn of the event loop is worked on together at its end; what comes alone waits for nothing.

/**
 * Hands over what was gathered in a turn, in the order in which it came. At most `most` at a time: the rest waits for the
 * following turns, so that new connections and the admin port get their turn in between, however many requests wait.
 */
export function gatherTurns<T>(take: (gathered: readonly T[]) => void, most = Infinity): (arrival: T) => void {
  const gathered: T[] = []
  const handOver = () => {
    const next = gathered.splice(0, most)
    if (gathered.length > 0) setImmediate(handOver)
    take(next)
  }
  return (arrival) => {
    if (gathered.push(arrival) === 1) setImmediate(handOver)
  }
}

/** How many turns may be waited for more. */
const MOST_TURNS = 4

/** Calls `done` after a turn that brought nothing more, or after some turns. */
export function whileGrowing(count: () => number, done: () => void, seen = 0, turns = MOST_TURNS): void {
  const now = count()
  if (now > seen && turns > 0) setImmediate(() => whileGrowing(count, done, now, turns - 1))
  else done()
}

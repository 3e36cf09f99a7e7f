// What arrives in one turn of the event loop is worked on together at its end; what comes alone waits for nothing.

/** Hands over what was gathered in a turn, in the order in which it came. */
export function gatherTurns<T>(take: (gathered: readonly T[]) => void): (arrival: T) => void {
  let gathered: T[] = []
  return (arrival) => {
    if (gathered.push(arrival) > 1) return
    setImmediate(() => {
      const all = gathered
      gathered = []
      take(all)
    })
  }
}

// "Did you mean …?": the known word that is nearest to a mistyped one.

/** Returns undefined if none is near: at most one letter in three may differ. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const [best] = known
    .map((candidate) => ({ candidate, far: distance(word, candidate) }))
    .toSorted((a, b) => a.far - b.far)
  return best !== undefined && best.far <= Math.max(1, Math.floor(best.candidate.length / 3))
    ? best.candidate
    : undefined
}

export function didYouMean(word: string, known: readonly string[]): string {
  const found = nearest(word, known)
  return found === undefined ? '' : ` Did you mean ${found}?`
}

/** How many letters must be added, removed, replaced or swapped with their neighbour (optimal string alignment). */
function distance(from: string, to: string): number {
  let [before, last]: [number[], number[]] = [[], Array.from({ length: to.length + 1 }, (_, index) => index)]
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row]
    for (let column = 1; column <= to.length; column += 1) {
      const same = from[row - 1] === to[column - 1]
      const swapped = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]
      current[column] = Math.min(
        last[column]! + 1,
        current[column - 1]! + 1,
        last[column - 1]! + (same ? 0 : 1),
        swapped ? before[column - 2]! + 1 : Number.POSITIVE_INFINITY,
      )
    }
    ;[before, last] = [last, current]
  }
  return last[to.length]!
}

// Suggests a known word for a mistyped one: a command, an option, a setting, or the name of a category.

/** Suggests the known word that is nearest to a mistyped one, as `fold` reads them; returns '' if more than one letter in three differs. */
export function didYouMean(word: string, known: readonly string[], fold: (text: string) => string = String): string {
  const sought = fold(word)
  const near = known.flatMap((candidate) => {
    const folded = fold(candidate)
    const most = Math.max(1, Math.floor(folded.length / 3))
    // The distance takes a time of both lengths, and is at least their difference.
    const far = Math.abs(folded.length - sought.length) > most ? Infinity : distance(sought, folded)
    return far <= most ? [{ candidate, far }] : []
  })
  const [best] = near.toSorted((a, b) => a.far - b.far)
  return best === undefined ? '' : ` Did you mean ${best.candidate}?`
}

/** Counts the letters to add, remove, replace or swap with their neighbour (optimal string alignment distance). */
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

// Suggests a known word for a mistyped one: a command, an option, a setting, or the name of a category.

/** Bounds what a comparison with 1,000 names takes: the longest word that is compared, and how many letters of it may differ. */
const MOST = { letters: 64, differ: 3 }

/** Suggests the known word that is nearest to a mistyped one; returns '' if there is none. */
export function didYouMean(word: string, known: Iterable<string>): string {
  const nearest = nearestWord(word, known)
  return nearest === undefined ? '' : ` Did you mean ${nearest}?`
}

/** Returns the known word that is nearest to a mistyped one; undefined if more than one letter in three differs, or all. */
export function nearestWord(word: string, known: Iterable<string>): string | undefined {
  if (word.length > MOST.letters) return undefined
  let [best, least]: [string | undefined, number] = [undefined, Infinity]
  for (const candidate of known) {
    const most = Math.min(MOST.differ, Math.max(1, Math.floor(candidate.length / 3)), candidate.length - 1, least - 1)
    const far = distance(word, candidate, most)
    if (far <= most) [best, least] = [candidate, far]
  }
  return best
}

/**
 * Counts the letters to add, remove, replace or swap with their neighbour (optimal string alignment distance), up to one more than
 * `most`: looks only at places that so few changes can reach.
 */
function distance(from: string, to: string, most: number): number {
  const far = most + 1
  if (Math.abs(from.length - to.length) > most) return far
  const places = () => Array.from({ length: to.length + 1 }, () => far)
  let [current, before, last] = [places(), places(), places()]
  for (let column = 0; column <= Math.min(to.length, most); column += 1) last[column] = column
  let leastBefore = 0
  for (let row = 1; row <= from.length; row += 1) {
    current.fill(far)
    current[0] = Math.min(row, far)
    const letter = from.charCodeAt(row - 1)
    let least = current[0]
    for (let column = Math.max(1, row - most); column <= Math.min(to.length, row + most); column += 1) {
      const same = letter === to.charCodeAt(column - 1)
      const swapped = letter === to.charCodeAt(column - 2) && from.charCodeAt(row - 2) === to.charCodeAt(column - 1)
      let changes = Math.min(last[column]! + 1, current[column - 1]! + 1, last[column - 1]! + (same ? 0 : 1))
      if (swapped) changes = Math.min(changes, before[column - 2]! + 1)
      current[column] = changes
      least = Math.min(least, changes)
    }
    // A swap continues from the row before the last one.
    if (Math.min(least, leastBefore) > most) return far
    leastBefore = least
    ;[current, before, last] = [before, last, current]
  }
  return Math.min(far, last[to.length]!)
}

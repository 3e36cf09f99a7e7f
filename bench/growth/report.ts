// The figures as a table for people, and the verdict: does the cost stay flat?
import type { EngineGrowth, Measured } from './measure.ts'

/** What a page or a create may cost with the most animals, of what it costs with the fewest. */
export const FLAT = 1.3

export function withinLimit({ measures }: EngineGrowth): boolean {
  return !measures.some(isAbove)
}

/** An animal at a random id is only shown: its cost is so small that the processor's own caches are seen in it. */
function isAbove({ kind, ratio }: Measured): boolean {
  return kind !== 'animal' && ratio.at(-1)! > FLAT
}

/** In Markdown, so that it can be pasted into the documentation. */
export function growthTable({ version, sizes, measures }: EngineGrowth): string {
  const head = [version, ...sizes.map((size) => size.toLocaleString('en')), 'last : first']
  const rows = measures.map((measured) => [
    measured.name,
    ...measured.microseconds.map((value) => `${value.toFixed(value < 100 ? 1 : 0)} µs`),
    `${measured.ratio.at(-1)!.toFixed(2)}${isAbove(measured) ? ` > ${FLAT}` : ''}`,
  ])
  const lines = [head, head.map((_, column) => (column === 0 ? '---' : '---:')), ...rows]
  return lines.map((cells) => `| ${cells.join(' | ')} |\n`).join('')
}

// Renders the figures as a table, and judges whether the cost stays flat.
import type { EngineGrowth, Measured } from './measure.ts'

/** The highest allowed ratio of the cost of a page or create with the most animals to its cost with the fewest. */
export const FLAT = 1.3

export function withinLimit({ measures }: EngineGrowth): boolean {
  return !measures.some(isAbove)
}

/** Returns whether the cost is too high. Reads of one animal are not judged: they are so cheap that the processor's caches show in them. */
function isAbove({ kind, ratio }: Measured): boolean {
  return kind !== 'animal' && ratio.at(-1)! > FLAT
}

/** Renders a Markdown table, which can be pasted into the documentation. */
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

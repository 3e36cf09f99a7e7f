// The figures as a table for people, and the verdict: does the cost stay flat?
import type { EngineGrowth } from './measure.ts'

/** What the largest size may cost of what the smallest costs. */
export const FLAT = 1.3

export function withinLimit({ measures }: EngineGrowth): boolean {
  return measures.every(({ ratio }) => ratio.at(-1)! <= FLAT)
}

/** In Markdown, so that it can be pasted into the documentation. */
export function growthTable({ version, sizes, measures }: EngineGrowth): string {
  const head = [version, ...sizes.map((size) => size.toLocaleString('en')), 'last : first']
  const rows = measures.map(({ name, microseconds, ratio }) => [
    name,
    ...microseconds.map((value) => `${value.toFixed(value < 100 ? 1 : 0)} µs`),
    `${ratio.at(-1)!.toFixed(2)}${ratio.at(-1)! > FLAT ? ` > ${FLAT}` : ''}`,
  ])
  const lines = [head, head.map((_, column) => (column === 0 ? '---' : '---:')), ...rows]
  return lines.map((cells) => `| ${cells.join(' | ')} |\n`).join('')
}

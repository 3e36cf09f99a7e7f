// Draws the growth: a panel for each engine, a line for each measure, for light and dark mode.
import type { EngineGrowth, Measured } from './measure.ts'
import { FLAT } from './report.ts'

const WIDTH = 820
const PANEL = { left: 60, right: 560, top: 76, height: 230, pitch: 320 }
const LABEL_PITCH = 17
const HIGHEST = 2

const STYLE = `
  svg { font: 13px system-ui, sans-serif; --ink: #1f2328; --soft: #59636e; --grid: #d1d9e0; --page: #0550ae; --animal: #6e7781; --create: #bc4c00; --limit: #a40e26 }
  @media (prefers-color-scheme: dark) {
    svg { --ink: #f0f6fc; --soft: #9198a1; --grid: #3d444d; --page: #79c0ff; --animal: #9198a1; --create: #ffa657; --limit: #ff7b72 }
  }
  text { fill: var(--ink); font-variant-numeric: tabular-nums }
  .soft { fill: var(--soft) }
  .title { font-size: 16px; font-weight: 600 }
  .grid { stroke: var(--grid) }
  .limit { stroke: var(--limit); stroke-dasharray: 6 4 }
  .limit-name { fill: var(--limit) }
  .page { stroke: var(--page) } .animal { stroke: var(--animal) } .create { stroke: var(--create) }
  polyline { fill: none; stroke-width: 1.75 }
  .leader { stroke-width: 0.75 }`

export function drawGrowth(results: readonly EngineGrowth[]): string {
  const height = PANEL.top + results.length * PANEL.pitch - 50
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-labelledby="title">
<title id="title">Cost of a page and of a create by the number of animals, as a ratio to the smallest store</title>
<style>${STYLE}
</style>
<text x="${PANEL.left}" y="24" class="soft">Cost of one call, as a ratio to the same call with ${results[0]!.sizes[0]!.toLocaleString('en')} animals; from left to right, the number of animals</text>
${results.map((result, index) => panel(result, PANEL.top + index * PANEL.pitch)).join('\n')}
</svg>
`
}

function panel({ version, sizes, measures }: EngineGrowth, top: number): string {
  const bottom = top + PANEL.height
  const x = (index: number) => PANEL.left + (index / (sizes.length - 1)) * (PANEL.right - PANEL.left)
  const y = (ratio: number) => round(bottom - (Math.min(ratio, HIGHEST) / HIGHEST) * PANEL.height)
  const grid = [0, 0.5, 1, 1.5, HIGHEST].map(
    (ratio) => `<line class="grid" x1="${PANEL.left}" x2="${PANEL.right}" y1="${y(ratio)}" y2="${y(ratio)}"/>
<text class="soft" x="${PANEL.left - 10}" y="${y(ratio) + 4}" text-anchor="end">${ratio}×</text>`,
  )
  const ticks = sizes.map(
    (size, index) =>
      `<text class="soft" x="${round(x(index))}" y="${bottom + 22}" text-anchor="middle">${size.toLocaleString('en')}</text>`,
  )
  const limit = `<line class="limit" x1="${PANEL.left}" x2="${PANEL.right}" y1="${y(FLAT)}" y2="${y(FLAT)}"/>
<text class="limit-name" x="${PANEL.left + 8}" y="${y(FLAT) - 7}">the limit, ${FLAT}×</text>`
  const lines = measures.map(
    ({ kind, ratio }) =>
      `<polyline class="${kind}" points="${ratio.map((value, index) => `${round(x(index))},${y(value)}`).join(' ')}"/>`,
  )
  return [
    `<text class="title" x="${PANEL.left}" y="${top - 12}">${version}</text>`,
    ...grid,
    ...ticks,
    limit,
    ...lines,
    ...labels(measures, y),
  ].join('\n')
}

/** Draws the labels at the right ends of the lines, spaced so that none covers another. */
function labels(measures: readonly Measured[], y: (ratio: number) => number): string[] {
  const sorted = measures.toSorted((a, b) => b.ratio.at(-1)! - a.ratio.at(-1)!)
  const middle = sorted.reduce((sum, { ratio }) => sum + y(ratio.at(-1)!), 0) / sorted.length
  const first = middle - ((sorted.length - 1) * LABEL_PITCH) / 2
  return sorted.map(({ name, kind, ratio }, index) => {
    const at = round(first + index * LABEL_PITCH)
    const points = `${PANEL.right},${y(ratio.at(-1)!)} ${PANEL.right + 12},${at} ${PANEL.right + 18},${at}`
    return `<polyline class="leader ${kind}" points="${points}"/>
<text x="${PANEL.right + 24}" y="${at + 4}">${ratio.at(-1)!.toFixed(2)}× ${name}</text>`
  })
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}

// Draws the chart of docs/performance.md: shares of the ceiling as bars, for light and dark mode.
import type { Result } from './measure.ts'
import { CEILING, OURS } from './report.ts'

const SHOWN = ['list-20', 'list-cold', 'get', 'create']
const BAR = 14
const GAP = 22
const LEFT = 190
const WIDTH = 720
const FULL = WIDTH - LEFT - 60

const STYLE = `
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .row { font-weight: 600 }
  .bar { fill: #b6bcc4 }
  .ours { fill: #b4531f }
  .ceiling { stroke: #57606a; stroke-dasharray: 3 3 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .bar { fill: #57606a }
    .ours { fill: #e8884f }
    .ceiling { stroke: #8b949e }
  }`

export function drawChart(results: readonly Result[]): string {
  const shapes: string[] = []
  let top = 34
  for (const id of SHOWN) {
    const bars = results.filter(({ row, subject }) => row.id === id && subject !== CEILING)
    if (bars.length === 0) continue
    shapes.push(text(0, top + 11, 'row', bars[0]!.row.title))
    top += BAR + 6
    for (const { subject, ofCeiling } of bars) {
      const share = ofCeiling!.median
      shapes.push(
        text(LEFT - 10, top + 11, 'name', subject, 'end'),
        `<rect class="bar${subject === OURS ? ' ours' : ''}" x="${LEFT}" y="${top}" width="${Math.max(1, Math.min(share, 1.05) * FULL).toFixed(1)}" height="${BAR}" rx="2"/>`,
        text(LEFT + Math.min(share, 1.05) * FULL + 6, top + 11, 'value', share.toFixed(2)),
      )
      top += BAR + 4
    }
    top += GAP - 4
  }
  const height = top
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="Requests per second as a share of bare node:http">`,
    `<style>${STYLE}\n</style>`,
    text(LEFT + FULL, 14, 'name', 'bare node:http = 1', 'end'),
    `<line class="ceiling" x1="${LEFT + FULL}" x2="${LEFT + FULL}" y1="20" y2="${height - GAP}"/>`,
    ...shapes,
    '</svg>\n',
  ].join('\n')
}

function text(x: number, y: number, kind: string, words: string, anchor = 'start'): string {
  return `<text class="${kind}" x="${x.toFixed(1)}" y="${y}" text-anchor="${anchor}">${words}</text>`
}

// What the drill saw, as a small table and a few lines.
import type { Acknowledged, Clients } from './clients.ts'
import type { Books } from './verdict.ts'

/** Something that was killed, and the time in which its effect is looked for. */
export interface Blow {
  name: string
  at: number
  until: number
}

export function blowTable(blows: readonly Blow[], clients: Clients): string {
  const rows = blows.map(({ name, at, until }) => {
    const during = clients.acknowledged.filter((create) => create.at >= at && create.at <= until)
    const again = during.filter(({ tries }) => tries > 1)
    const most = Math.max(...during.map(({ tries }) => tries))
    return [name, `${Math.round(longestGap(clients.acknowledged, at, until))} ms`, String(during.length), String(again.length), String(most)]
  })
  const lines = [['', 'without a create', 'creates', 'of them tried again', 'tries at most'], ...rows]
  const widths = lines[0]!.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)))
  return lines.map((line) => `${line.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!))).join('  ')}\n`).join('')
}

/** The longest time between two acknowledged creates, of those that end after `from`. */
function longestGap(acknowledged: readonly Acknowledged[], from: number, until: number): number {
  const times = acknowledged.map(({ at }) => at).filter((at) => at <= until).toSorted((a, b) => a - b)
  const gaps = times.map((at, index) => (at < from ? 0 : at - (times[index - 1] ?? from)))
  return Math.max(...gaps)
}

export function summary({ clients: { acknowledged, failed, setbacks }, verdict: { stored, lost, doubled } }: Books): string {
  const rows: [string, number | string][] = [
    ['acknowledged', acknowledged.length],
    ['stored', stored],
    ['lost', lost.length],
    ['doubled', doubled.length],
    ['failed for a client', failed.length],
    ['answers tried again', [...setbacks].map(([kind, count]) => `${count} × ${kind}`).join(', ') || 'none'],
  ]
  const details = [...lost.slice(0, 5).map((name) => `lost: ${name}`), ...doubled.slice(0, 5).map((name) => `doubled: ${name}`), ...failed.slice(0, 5)]
  return [...rows.map(([name, value]) => `${name.padEnd(20)} ${value}`), ...details, ''].join('\n')
}

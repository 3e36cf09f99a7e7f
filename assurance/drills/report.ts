// Renders the results of a drill as a table and a summary.
import { inColumns } from '../../test/harness/columns.ts'
import { percentile } from '../../test/harness/percentiles.ts'
import type { Acknowledged, Clients, Setback } from '../../test/harness/failures/clients.ts'
import type { Audit } from '../../test/harness/failures/verdict.ts'

/** A fault, and the time in which its effects are counted. */
export interface FaultWindow {
  name: string
  at: number
  until: number
}

export function faultTable(injected: readonly FaultWindow[], clients: Clients): string {
  const rows = injected.map(({ name, at, until }) => {
    const during = clients.acknowledged.filter((create) => create.at >= at && create.at <= until)
    const again = during.filter(({ tries }) => tries > 1)
    const most = during.reduce((highest, { tries }) => Math.max(highest, tries), 0)
    const refused = clients.setbacks.filter(
      (setback) => setback.at >= at && setback.at <= until && setback.kind.startsWith('503'),
    )
    const gap = `${Math.round(longestGap(clients.acknowledged, at, until))} ms`
    return [
      name,
      gap,
      String(during.length),
      String(again.length),
      String(most),
      String(refused.length),
      latency(refused, 0.99),
      latency(refused, 1),
    ]
  })
  return inColumns([
    ['', 'without a create', 'creates', 'of them tried again', 'tries at most', '503s', 'p99', 'slowest'],
    ...rows,
  ])
}

/** Renders the time within which this share of the answers arrived. */
function latency(answers: readonly Setback[], share: number): string {
  const times = answers.map(({ ms }) => ms)
  return times.length === 0 ? '-' : `${Math.round(percentile(times, share))} ms`
}

/** Returns the longest time between two successive acknowledged creates, the later of them between `from` and `until`. */
function longestGap(acknowledged: readonly Acknowledged[], from: number, until: number): number {
  const times = acknowledged
    .map(({ at }) => at)
    .filter((at) => at <= until)
    .toSorted((a, b) => a - b)
  const gaps = times.map((at, index) => (at < from ? 0 : at - (times[index - 1] ?? from)))
  return gaps.reduce((longest, gap) => Math.max(longest, gap), 0)
}

export function summary({
  clients: { acknowledged, failed, setbacks },
  verdict: { stored, lost, doubled },
}: Audit): string {
  const rows: [string, number | string][] = [
    ['acknowledged', acknowledged.length],
    ['stored', stored],
    ['lost', lost.length],
    ['doubled', doubled.length],
    ['failed for a client', failed.length],
    ['answers tried again', counted(setbacks.map(({ kind }) => kind))],
  ]
  const details = [
    ...lost.slice(0, 5).map((name) => `lost: ${name}`),
    ...doubled.slice(0, 5).map((name) => `doubled: ${name}`),
    ...failed.slice(0, 5),
  ]
  return [...rows.map(([name, value]) => `${name.padEnd(20)} ${value}`), ...details, ''].join('\n')
}

/** Renders how often each kind occurs. */
export function counted(kinds: readonly string[]): string {
  return [...Map.groupBy(kinds, (kind) => kind)].map(([kind, { length }]) => `${length} × ${kind}`).join(', ') || 'none'
}

// Renders the results of a run: a table for the terminal, and one for the documents.
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import { inColumns } from '../harness/columns.ts'
import { type Figure, spread } from '../harness/percentiles.ts'
import { CONNECTIONS, GENERATOR } from './load.ts'
import type { Mixed, Plan, Result } from './measure.ts'
import { PLACEMENT } from './placement.ts'
import { MIXED, type Row } from './rows.ts'

export const OURS = 'petstore'
export const CEILING = 'ceiling'
export const START_WITHIN_MS = 300

export interface Report {
  at: string
  machine: string
  node: string
  how: string
  /** The versions of the peers. */
  peers: string[]
  leftOut: string[]
  results: Result[]
  /** Undefined in a run of selected rows. */
  mixed: Mixed | undefined
  startMs: Figure
}

/** How the load was generated, if not with the default settings. */
export interface Loaded {
  connections?: number
  placement?: string
}

export function describeRun(
  { rounds, seconds }: Plan,
  { connections = CONNECTIONS, placement = PLACEMENT }: Loaded = {},
): Pick<Report, 'at' | 'machine' | 'node' | 'how'> {
  const [cpu] = cpus()
  const gigabytes = Math.round(totalmem() / 2 ** 30)
  return {
    at: new Date().toISOString().slice(0, 10),
    machine: `${cpus().length} cores ${process.arch} (${cpuModel(cpu?.model)}), ${gigabytes} GB, ${process.platform}`,
    node: process.version,
    how: `${GENERATOR}, ${connections} connections, ${placement}; medians of ${rounds} interleaved rounds of ${seconds} s, lowest and highest in brackets`,
  }
}

/** Returns the name of the processor. Node has none for many ARM cores; /proc/cpuinfo has at least the part number. */
function cpuModel(model: string | undefined): string {
  if (model && model !== 'unknown') return model
  const part = /CPU part\s*: (\w+)/.exec(readOr('/proc/cpuinfo'))?.[1]
  return part === '0xd0c' ? 'Neoverse-N1' : (part ?? 'unknown')
}

function readOr(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** Returns a row of cells for each kind of work: the required and the measured share of the ceiling. */
export function table({ results, mixed, startMs }: Report): string[][] {
  const rows = [...new Set(results.map(({ row }) => row))]
  const peers = [...new Set(results.map(({ subject }) => subject))].filter((name) => name !== OURS && name !== CEILING)
  const of = (row: Row, subject: string) => results.find((result) => result.row === row && result.subject === subject)
  const none = peers.map(() => '')
  return [
    ['Work', 'at least', 'aim', 'reached', 'requests/s', 'p99', ...peers],
    ...rows.map((row) => {
      const service = of(row, OURS)!
      return [
        row.title,
        row.atLeast.toFixed(2),
        row.aim.toFixed(2),
        spread(service.ofCeiling!),
        Math.round(service.perSecond.median).toLocaleString('en'),
        `${(service.p99.median / 1000).toFixed(1)} ms`,
        ...peers.map((peer) => of(row, peer)?.ofCeiling?.median.toFixed(2) ?? '–'),
      ]
    }),
    ...(mixed ? mixedRows(mixed).map((cells) => [...cells, ...none]) : []),
    ['start to listening', `under ${START_WITHIN_MS} ms`, '', `${Math.round(startMs.median)} ms`, '', '', ...none],
  ]
}

function mixedRows({ rate, busy, p99 }: Mixed): string[][] {
  return [
    [
      `${MIXED.title}: rate, of its quiet rate`,
      MIXED.rate.toFixed(2),
      '',
      spread(rate),
      Math.round(busy.median).toLocaleString('en'),
      '',
    ],
    [`${MIXED.title}: p99, times its quiet p99`, `under ${MIXED.p99}`, '', spread(p99), '', ''],
  ]
}

export function forTerminal(report: Report): string {
  return `${inColumns(table(report))}\n${about(report)}\n`
}

function about({ at, machine, node, how, peers, leftOut }: Report): string {
  const versions = peers.length === 0 ? '' : ` Peers: ${peers.join(', ')}.`
  const missing = leftOut.length === 0 ? '' : ` Left out: ${leftOut.join(', ')}.`
  return `Shares of the ceiling: bare node:http on the same Node with a fixed body of the same bytes, no key, no storage. ${at}, ${machine}, Node ${node}. ${how}.${versions}${missing}`
}

const MARKERS = /(<!-- bench:begin -->\n)[^]*?(<!-- bench:end -->)/

/** Writes the table between the markers of a document; returns whether it has the markers. */
export function intoDocument(path: URL, report: Report): boolean {
  const text = readOr(path.pathname)
  if (!MARKERS.test(text)) return false
  const [head, ...rows] = table(report).map((cells) => `| ${cells.join(' | ')} |`)
  const ruler = `|${'---|'.repeat(table(report)[0]!.length)}`
  const block = [head, ruler, ...rows, '', about(report), ''].join('\n')
  writeFileSync(
    path,
    text.replace(MARKERS, (_, begin: string, end: string) => `${begin}${block}${end}`),
  )
  return true
}

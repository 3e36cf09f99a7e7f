// Measures the rows. Interleaves the rounds of the subjects, so that other load on the machine affects all alike; reports medians.
import { type Figure, figure } from '../harness/percentiles.ts'
import type { FixedAnswer } from './ceiling.ts'
import { CONNECTIONS, type Measured, shoot, type Shot } from './load.ts'
import { MALFORMED_KEY, type Row, SAMPLE_CURSOR, type Work } from './rows.ts'
import type { Server } from './subjects.ts'

/** A subject with two servers: one only for reads, one for writes. */
export interface Subject {
  name: string
  servers: Record<'read' | 'write', Server>
  /** Returns whether the subject supports the row. */
  supports: (row: Work) => boolean
}

export interface Result {
  row: Row
  subject: string
  perSecond: Figure
  p50: Figure
  p99: Figure
  /** The rate as a share of the ceiling's rate in the same round; undefined for the ceiling itself. */
  ofCeiling: Figure | undefined
}

export interface Plan {
  rounds: number
  seconds: number
  warmUpSeconds: number
}

/** The first subject is the ceiling. */
export async function measureRow(
  row: Row,
  subjects: readonly Subject[],
  { rounds, seconds, warmUpSeconds }: Plan,
): Promise<Result[]> {
  const able = subjects.filter(({ supports }) => supports(row))
  for (const subject of able) await shootRow(row, subject, warmUpSeconds)
  const shots = new Map<Subject, Measured[]>(able.map((subject) => [subject, []]))
  for (let round = 0; round < rounds; round += 1) {
    for (const subject of able) shots.get(subject)!.push(await shootRow(row, subject, seconds))
  }
  const ceiling = shots.get(able[0]!)!
  return able.map((subject) => {
    const measured = shots.get(subject)!
    return {
      row,
      subject: subject.name,
      perSecond: figure(measured.map(({ perSecond }) => perSecond)),
      p50: figure(measured.map(({ p50 }) => p50)),
      p99: figure(measured.map(({ p99 }) => p99)),
      ofCeiling:
        subject === able[0]
          ? undefined
          : figure(measured.map(({ perSecond }, round) => perSecond / ceiling[round]!.perSecond)),
    }
  })
}

export async function shootRow(row: Work, subject: Pick<Subject, 'servers'>, seconds: number): Promise<Measured> {
  const measured = await shoot({
    ...requestOf(row, subject.servers[row.writes ? 'write' : 'read']),
    seconds,
    connections: CONNECTIONS,
  })
  if (row.status < 400 && measured.refused > 0)
    throw new Error(`${measured.refused} requests were refused of ${row.title}`)
  return measured
}

export function requestOf(row: Work, server: Server): Pick<Shot, 'base' | 'path' | 'method' | 'body' | 'key'> {
  return {
    ...server.target(row),
    method: row.method,
    body: row.body,
    key: row.key === 'good' ? server.key : MALFORMED_KEY,
  }
}

/** Sends one request of the row and returns the answer; throws if its status is not the row's. */
export async function sample(row: Work, server: Server): Promise<FixedAnswer> {
  const { base, path, method, key, ...posted } = requestOf(row, server)
  const body = method === 'POST' ? posted.body : undefined
  const response = await fetch(base + path.replace(/{(?:cursor|page)}/, SAMPLE_CURSOR).replace('{id}', '1'), {
    method,
    headers: { Authorization: `Bearer ${key}`, ...(body !== undefined && { 'Content-Type': 'application/json' }) },
    ...(body !== undefined && { body }),
  })
  if (response.status !== row.status)
    throw new Error(`${row.title}: expected ${row.status}, got ${response.status} ${await response.text()}`)
  return { status: response.status, body: await response.text() }
}

export interface Mixed {
  quiet: Figure
  busy: Figure
  creates: Figure
  /** The ratios of busy to quiet. */
  rate: Figure
  p99: Figure
}

/** Measures in each round the list alone, and then the list while creates run at full speed. */
export async function measureMixed(
  list: Row,
  create: Row,
  server: Server,
  { rounds, seconds, warmUpSeconds }: Plan,
): Promise<Mixed> {
  const listShot = { ...requestOf(list, server), seconds, connections: CONNECTIONS }
  const createShot = { ...requestOf(create, server), seconds, connections: CONNECTIONS }
  await shoot({ ...listShot, seconds: warmUpSeconds })
  const runs: { quiet: Measured; busy: Measured; creates: Measured }[] = []
  for (let round = 0; round < rounds; round += 1) {
    const quiet = await shoot(listShot)
    const [busy, creates] = await Promise.all([shoot(listShot), shoot(createShot)])
    runs.push({ quiet, busy, creates })
  }
  return {
    quiet: figure(runs.map(({ quiet }) => quiet.perSecond)),
    busy: figure(runs.map(({ busy }) => busy.perSecond)),
    creates: figure(runs.map(({ creates }) => creates.perSecond)),
    rate: figure(runs.map(({ quiet, busy }) => busy.perSecond / quiet.perSecond)),
    p99: figure(runs.map(({ quiet, busy }) => busy.p99 / quiet.p99)),
  }
}

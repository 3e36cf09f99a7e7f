// Sends the requests of a work to a server.
import type { FixedAnswer } from './ceiling.ts'
import { CONNECTIONS, type Measured, shoot, type Shot } from './load.ts'
import type { Server } from './subjects.ts'
import { MALFORMED_KEY, SAMPLE_CURSOR, type Work } from './works.ts'

/** Resolves with what was measured; throws if a request was refused that the work expects to succeed. */
export async function shootWork(work: Work, server: Server, seconds: number): Promise<Measured> {
  const measured = await shoot({ ...requestOf(work, server), seconds, connections: CONNECTIONS })
  if (work.status < 400 && measured.refused > 0)
    throw new Error(`${measured.refused} requests were refused of ${work.title}`)
  return measured
}

function requestOf(work: Work, server: Server): Pick<Shot, 'base' | 'path' | 'method' | 'body' | 'key'> {
  return {
    ...server.target(work),
    method: work.method,
    body: work.body,
    key: work.key === 'good' ? server.key : MALFORMED_KEY,
  }
}

/** Sends one request of the work and returns the answer; throws if its status is not the work's. */
export async function sample(work: Work, server: Server): Promise<FixedAnswer> {
  const { base, path, method, key, ...posted } = requestOf(work, server)
  const body = method === 'POST' ? posted.body : undefined
  const response = await fetch(base + path.replace(/{page}/, SAMPLE_CURSOR).replace('{id}', '1'), {
    method,
    headers: { Authorization: `Bearer ${key}`, ...(body !== undefined && { 'Content-Type': 'application/json' }) },
    ...(body !== undefined && { body }),
  })
  if (response.status !== work.status)
    throw new Error(`${work.title}: expected ${work.status}, got ${response.status} ${await response.text()}`)
  return { status: response.status, body: await response.text() }
}

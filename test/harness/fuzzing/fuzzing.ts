// Sends malformed requests to one instance over raw sockets, and collects what it does wrong.
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { createKey, startInstance } from '../programs/instance.ts'
import { hasEnded, killHard } from '../programs/processes.ts'
import { below, type Random } from '../random.ts'
import { readAnswers } from './answers.ts'
import { malformed, realRequests } from './malformed.ts'

const AT_A_TIME = 8
/** A connection that stays open longer after the client has ended its side is a violation; generous for a busy machine. */
const CLOSED_WITHIN_MS = 30_000
/** Long enough for the server to read a segment before the next one arrives. */
const SEGMENT_PAUSE_MS = 2

export interface Fuzzing {
  folder: string
  database: string
  requests: number
  random: Random
  /** Injects the fault: sends requests that staging answers with 503 on demand. */
  plant?: boolean
}

export interface Fuzzed {
  /** The number of answers by status; a connection closed without an answer counts as status 0. */
  statuses: Map<number, number>
  violations: string[]
}

export async function fuzz({ folder, database, requests, random, plant = false }: Fuzzing): Promise<Fuzzed> {
  const log = join(folder, 'instance.log')
  const instance = await startInstance(database, log)
  const key = await createKey(database)
  const real = realRequests(key).map((request) =>
    plant ? request.replace('\r\n', '\r\nPetstore-Rehearse: 503\r\n') : request,
  )
  const statuses = new Map<number, number>()
  const violations: string[] = []
  let left = requests
  const work = async () => {
    while (left > 0) {
      left -= 1
      const sent = malformed(real, random)
      const received = await exchange(instance.port, cut(sent, random))
      const read =
        received === undefined
          ? { statuses: [], violations: ['the connection stayed open'] }
          : readAnswers(received, sent.includes('HEAD'))
      for (const status of read.statuses.length === 0 ? [0] : read.statuses)
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      violations.push(
        ...read.violations.map(
          (violation) => `${violation}\n    sent: ${JSON.stringify(sent.toString('latin1')).slice(0, 1000)}`,
        ),
      )
    }
  }
  await Promise.all(Array.from({ length: AT_A_TIME }, work))
  violations.push(...(await checkWellFormed(instance.url, key)))
  if (hasEnded(instance.process)) violations.push('the instance has ended')
  violations.push(...errorsLogged(log))
  await killHard(instance.process)
  return { statuses, violations }
}

/** Cuts a request into up to four segments. */
function cut(bytes: Buffer, random: Random): Buffer[] {
  const at = Array.from({ length: below(4, random) }, () => below(bytes.length + 1, random)).toSorted((a, b) => a - b)
  return [...at, bytes.length].map((end, index) => bytes.subarray(at[index - 1] ?? 0, end))
}

/** Sends the segments, ends the client's side, and returns all bytes received, or undefined if the server does not end its side. */
function exchange(port: number, segments: readonly Buffer[]): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const parts: Buffer[] = []
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    const giveUp = globalThis.setTimeout(() => {
      resolve(undefined)
      socket.destroy()
    }, CLOSED_WITHIN_MS)
    socket.on('data', (part: Buffer) => parts.push(part))
    // The server resets a connection that continues to send malformed bytes.
    socket.on('error', () => {})
    socket.on('end', () => socket.destroy())
    socket.on('close', () => {
      clearTimeout(giveUp)
      resolve(Buffer.concat(parts))
    })
    void sendAll(socket, segments)
  })
}

async function sendAll(socket: Socket, segments: readonly Buffer[]): Promise<void> {
  socket.setNoDelay(true)
  for (const segment of segments) {
    socket.write(segment)
    if (segments.length > 1) await setTimeout(SEGMENT_PAUSE_MS)
  }
  socket.end()
}

/** Checks that a well-formed create and list still work; returns the violations. */
async function checkWellFormed(base: string, key: string): Promise<string[]> {
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
  const url = `${base}/v1/pets`
  try {
    const created = await fetch(url, { method: 'POST', headers, body: '{"name":"Honest","categoryId":1}' })
    const listed = await fetch(url, { headers })
    const [newest] = (await listed.json()) as { name: string }[]
    return created.status === 201 && newest?.name === 'Honest'
      ? []
      : [`an honest create was answered ${created.status}`]
  } catch (error) {
    return [`an honest create failed: ${String(error)}`]
  }
}

function errorsLogged(log: string): string[] {
  const lines = readFileSync(log, 'utf8').split('\n').filter(Boolean)
  return lines
    .filter((line) => !line.startsWith('{') || (JSON.parse(line) as { level: string }).level === 'error')
    .map((line) => `logged: ${line.slice(0, 500)}`)
}

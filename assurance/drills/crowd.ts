// Many connections, each of which sends the next request as soon as the last one is answered.
import { connect, type Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { percentile } from '../../test/harness/percentiles.ts'

/** All connections are opened before the first request: with requests running, not all of 2,000 were accepted within 8 s. */
const OPENING_MS = 1000
/** The first requests are not measured. */
const WARMING_UP_MS = 500
/** A client whose connection was closed reconnects with the exponential backoff of client/. */
const FIRST_BACKOFF_MS = 500
const LONGEST_BACKOFF_MS = 8000

export interface Pace {
  /** Answers with a status below 300 per second. */
  perSecond: number
  p99Ms: number
  /** Connections that the server closed or refused. */
  refused: number
  /** Answers with 503 and a Retry-After. */
  busy: number
  /** Answers with any other status. */
  failed: number
}

export interface Crowd {
  port: number
  request: string
  connections: number
  seconds: number
  /** Called when the measurement begins. */
  begun: () => void
}

/** Keeps `connections` connections busy for `seconds` seconds and measures them. */
export async function crowd({ port, request, connections, seconds, begun }: Crowd): Promise<Pace> {
  const members = new Map<Socket, () => void>()
  let state: 'opening' | 'asking' | 'over' = 'opening'
  let latencies: number[] = []
  let [refused, busy, failed] = [0, 0, 0]

  function join(turnedAway: number): void {
    if (state === 'over') return
    const socket = connect(port, '127.0.0.1')
    let sent = 0
    let received = ''
    const ask = () => {
      sent = performance.now()
      received = ''
      socket.write(request)
    }
    members.set(socket, ask)
    socket.setEncoding('latin1').on('connect', () => {
      if (state === 'asking') ask()
    })
    socket.on('data', (part: string) => {
      received += part
      if (!isComplete(received)) return
      if (received.startsWith('HTTP/1.1 2')) latencies.push(performance.now() - sent)
      else if (received.startsWith('HTTP/1.1 503') && /\r\nretry-after: /i.test(received)) busy += 1
      else failed += 1
      if (state === 'asking') ask()
    })
    // A refused connection is counted when it closes.
    socket.on('error', () => {})
    socket.on('close', () => {
      members.delete(socket)
      refused += 1
      const backoff = Math.min(FIRST_BACKOFF_MS * 2 ** turnedAway, LONGEST_BACKOFF_MS) * (0.5 + Math.random() / 2)
      void setTimeout(backoff).then(() => join(turnedAway + 1))
    })
  }

  for (let count = 0; count < connections; count += 1) join(0)
  await setTimeout(OPENING_MS)
  state = 'asking'
  for (const ask of members.values()) ask()
  await setTimeout(WARMING_UP_MS)
  latencies = []
  ;[refused, busy, failed] = [0, 0, 0]
  begun()
  const startedAt = performance.now()
  await setTimeout(seconds * 1000)
  const pace = {
    perSecond: (latencies.length * 1000) / (performance.now() - startedAt),
    refused,
    busy,
    failed,
  }
  state = 'over'
  for (const socket of members.keys()) socket.destroy()
  return { ...pace, p99Ms: percentile(latencies, 0.99) }
}

function isComplete(received: string): boolean {
  const headEnd = received.indexOf('\r\n\r\n')
  return headEnd > 0 && received.length >= headEnd + 4 + Number(/content-length: (\d+)/i.exec(received)?.[1] ?? 0)
}

// Many connections that each send the next request as soon as the answer to the last one has come.
import { connect, type Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'

/** A client that was turned away tries again after this long. */
const RECONNECT_MS = 200

export interface Pace {
  perSecond: number
  p99Ms: number
  /** Connections that were closed, or never opened. */
  refused: number
  /** Answers other than 200. */
  failed: number
}

/** Keeps so many connections busy for so long. */
export async function crowd(port: number, request: string, connections: number, seconds: number): Promise<Pace> {
  const latencies: number[] = []
  const sockets = new Set<Socket>()
  let refused = 0
  let failed = 0
  const end = performance.now() + seconds * 1000

  function join(): void {
    if (performance.now() > end) return
    const socket = connect(port, '127.0.0.1')
    sockets.add(socket)
    let sent = 0
    let received = ''
    const ask = () => {
      sent = performance.now()
      received = ''
      socket.write(request)
    }
    socket.setEncoding('latin1').on('connect', ask)
    socket.on('data', (part: string) => {
      received += part
      if (!isComplete(received)) return
      latencies.push(performance.now() - sent)
      if (!received.startsWith('HTTP/1.1 200')) failed += 1
      if (performance.now() < end) ask()
    })
    // A refused connection is counted when it closes.
    socket.on('error', () => {})
    socket.on('close', () => {
      sockets.delete(socket)
      if (performance.now() > end) return
      refused += 1
      void setTimeout(RECONNECT_MS).then(join)
    })
  }

  for (let count = 0; count < connections; count += 1) join()
  await setTimeout(seconds * 1000)
  for (const socket of sockets) socket.destroy()
  return { perSecond: latencies.length / seconds, p99Ms: percentile(latencies, 0.99), refused, failed }
}

function isComplete(received: string): boolean {
  const headEnd = received.indexOf('\r\n\r\n')
  return headEnd > 0 && received.length >= headEnd + 4 + Number(/content-length: (\d+)/i.exec(received)?.[1] ?? 0)
}

export function percentile(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? Number.NaN
}

// A client that sends a large body and reads the answer meanwhile, as curl does. It loses an answer that a reset overtakes.
import { connect, type Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { readHead } from '../../test/harness/connections/raw-http.ts'

export interface Upload {
  method: string
  path: string
  headers: Record<string, string>
  bytes: number
}

/** Sends the request. Resolves with the status and body of the answer, or with a text that says why there is none. */
export function upload(url: string, { method, path, headers, bytes }: Upload): Promise<string> {
  const { hostname, port, host } = new URL(url)
  return new Promise((resolve) => {
    const socket = connect({ port: Number(port), host: hostname, localAddress: '127.0.0.2' })
    let received = ''
    const done = (otherwise: string) => {
      socket.destroy()
      resolve(answerOf(received) ?? otherwise)
    }
    socket.setTimeout(15_000, () => done('no answer in 15 s'))
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1')
      if (answerOf(received) !== undefined) done('')
    })
    socket.on('error', ({ message }) => done(message))
    socket.on('close', () => done('closed without an answer'))
    const lines = Object.entries({ Host: host, 'Content-Length': String(bytes), ...headers }).map(
      ([name, value]) => `${name}: ${value}\r\n`,
    )
    socket.write(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`)
    void sendSlowly(socket, bytes)
  })
}

const SLICE = Buffer.alloc(64 * 1024, 'x')

/** Sends the body piece by piece, as over a network, so that the answer arrives before the body ends. */
async function sendSlowly(socket: Socket, bytes: number): Promise<void> {
  for (let left = bytes; left > 0 && socket.writable; left -= SLICE.length) {
    socket.write(SLICE.subarray(0, Math.min(left, SLICE.length)))
    await setTimeout(1)
  }
}

/** Returns the status and body of an answer, or undefined if it is not complete. */
function answerOf(text: string): string | undefined {
  const head = readHead(text)
  if (head === undefined) return undefined
  const body = text.slice(head.length)
  return body.length < Number(head.headers.get('content-length') ?? 0) ? undefined : `${head.status} ${body}`
}

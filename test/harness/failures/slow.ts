// Slow clients that hold connections open with as little work as possible, and honest clients that must be served meanwhile.
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { createKey, startInstance } from '../programs/instance.ts'
import { residentMegabytes } from '../programs/process-tree.ts'
import { killHard } from '../programs/processes.ts'
import { Traffic } from './traffic.ts'

/** How often a slow client sends its next bytes. */
const DRIP_MS = 500
const PIPELINED = 100
const HONEST_CLIENTS = 4
/** The share of the run in which the server accepts the slow clients and answers their pipelined requests. */
const OPENING_SHARE = 0.2

export interface SlowClients {
  folder: string
  database: string
  connections: number
  seconds: number
  seed: number
  /** Injects the fault: sets the connection limit to the number of slow clients. */
  plant?: boolean
}

export interface Served {
  answered: number
  /** Honest requests that got no answer, or a status other than 200 and 201. */
  broken: string[]
  /** The slowest honest request during OPENING_SHARE, and after it. */
  slowestAtFirstMs: number
  slowestMs: number
  /** The number of slow connections that the server has ended. */
  ended: number
  megabytes: number
}

export async function serveBesideSlowClients({
  folder,
  database,
  connections,
  seconds,
  seed,
  plant = false,
}: SlowClients): Promise<Served> {
  const env: Record<string, string> = plant ? { PETSTORE_MAX_CONNECTIONS: String(connections) } : {}
  const instance = await startInstance(database, join(folder, 'instance.log'), { env })
  const key = await createKey(database)
  // Connections left over from the start would count towards the limit.
  if (plant) await setTimeout(500)
  const kinds = [slowHeaders, slowBody, slowReader]
  const slow = Array.from({ length: connections }, (_, index) => kinds[index % kinds.length]!(instance.port, key))
  await setTimeout(500)
  const serveHonest = async (share: number) => {
    const traffic = new Traffic(instance.url, key, HONEST_CLIENTS, seed)
    await setTimeout(seconds * 1000 * share)
    await traffic.stop()
    return traffic
  }
  const first = await serveHonest(OPENING_SHARE)
  const then = await serveHonest(1 - OPENING_SHARE)
  const ended = slow.filter(({ destroyed }) => destroyed).length
  const megabytes = Math.round(residentMegabytes(instance.process.pid!))
  for (const socket of slow) socket.destroy()
  await killHard(instance.process)
  return {
    answered: first.answered + then.answered,
    broken: [...first.broken, ...then.broken],
    slowestAtFirstMs: first.slowestMs,
    slowestMs: then.slowestMs,
    ended,
    megabytes,
  }
}

/** Sends headers that never end (Slowloris). */
function slowHeaders(port: number): Socket {
  return drip(open(port, 'GET /v1/pets HTTP/1.1\r\nHost: localhost\r\n'), 'X-More: 1\r\n')
}

/** Sends a body one byte at a time. */
function slowBody(port: number, key: string): Socket {
  const head = `POST /v1/pets HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: 16000\r\n\r\n{`
  return drip(open(port, head), ' ')
}

/** Pipelines many requests and reads none of their answers. */
function slowReader(port: number, key: string): Socket {
  const socket = open(
    port,
    `GET /openapi.json HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\n\r\n`.repeat(PIPELINED),
  )
  return socket.pause()
}

function open(port: number, first: string): Socket {
  const socket = connect(port, '127.0.0.1')
  // The server may end the connection with a reset.
  socket.on('error', () => {})
  socket.on('end', () => socket.destroy())
  socket.resume().write(first)
  return socket
}

function drip(socket: Socket, bytes: string): Socket {
  const timer = setInterval(() => socket.write(bytes), DRIP_MS)
  socket.on('close', () => clearInterval(timer))
  return socket
}

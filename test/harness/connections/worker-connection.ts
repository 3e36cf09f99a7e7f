// Connections to a service of several processes that a chosen one has accepted, since the system decides which one does, and
// requests on them.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { acceptedFrom, socketsOf } from './accepted-sockets.ts'
import { createHead, RawConnection, REX } from './raw-http.ts'
import { until } from '../until.ts'

/** Sends a create up to its body, which the process now waits for. */
export async function beginCreate(connection: RawConnection, key: string): Promise<void> {
  connection.send(createHead(key, REX, 'Expect: 100-continue\r\n'))
  assert.equal((await connection.answer()).status, 100)
}

export function connectToWorker(url: string): Promise<RawConnection> {
  return connectUntil(url, (inode) => !socketsOf(process.pid).has(inode))
}

export function connectToFirstProcess(url: string): Promise<RawConnection> {
  return connectTo(process.pid, url)
}

/** Waits until this process has accepted a connection, and gives that. */
export function connectTo(pid: number, url: string): Promise<RawConnection> {
  return connectUntil(url, (inode) => socketsOf(pid).has(inode))
}

async function connectUntil(url: string, isRight: (inode: string) => boolean): Promise<RawConnection> {
  let found: RawConnection | undefined
  const look = async () => {
    const connection = new RawConnection(url)
    await once(connection.socket, 'connect')
    const port = connection.socket.localPort!
    const inodes = await acceptedFrom([port], Number(new URL(url).port))
    if (isRight(inodes.get(port)!)) found = connection
    else connection.socket.destroy()
    return found !== undefined
  }
  await until(look, 'the right process accepts a connection')
  return found!
}

/** Connections enough that each process has some. */
export function connectionsTo({ url }: { url: string }, count = 16): RawConnection[] {
  return Array.from({ length: count }, () => new RawConnection(url))
}

/** Sends the same request on all connections, and gives the statuses of the answers. */
export async function ask(connections: readonly RawConnection[], request: string): Promise<number[]> {
  for (const connection of connections) connection.send(request)
  return Promise.all(connections.map(async (connection) => (await connection.answer()).status))
}

/** Sends the same request on all connections, and fails unless each is answered with this status. */
export async function askForAll(connections: readonly RawConnection[], request: string, status: number): Promise<void> {
  assert.deepEqual(new Set(await ask(connections, request)), new Set([status]))
}

export function close(connections: readonly RawConnection[]): void {
  for (const { socket } of connections) socket.destroy()
}

// Connections to a service of this process that a chosen process of it has accepted: the system decides which one does.
import { once } from 'node:events'
import { acceptedFrom, socketsOf } from '../harness/accepted-sockets.ts'
import { RawConnection } from '../harness/raw-http.ts'

export function connectToWorker(url: string): Promise<RawConnection> {
  return connectUntil(url, false)
}

export function connectToFirstProcess(url: string): Promise<RawConnection> {
  return connectUntil(url, true)
}

async function connectUntil(url: string, isFirst: boolean): Promise<RawConnection> {
  for (;;) {
    const connection = new RawConnection(url)
    await once(connection.socket, 'connect')
    const { localPort } = connection.socket
    const inodes = await acceptedFrom([localPort!], Number(new URL(url).port))
    if (socketsOf(process.pid).has(inodes.get(localPort!)!) === isFirst) return connection
    connection.socket.destroy()
  }
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

export function close(connections: readonly RawConnection[]): void {
  for (const { socket } of connections) socket.destroy()
}

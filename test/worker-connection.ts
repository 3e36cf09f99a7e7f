// Connections to a service of this process that a chosen process of it has accepted: the system decides which one does.
import { once } from 'node:events'
import { acceptedFrom, socketsOf } from '../assurance/harness/accepted-sockets.ts'
import { RawConnection } from '../assurance/harness/raw-http.ts'
import { until } from '../assurance/harness/until.ts'

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
  await until(look, 'the right process accepts a connection', 90_000)
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

export function close(connections: readonly RawConnection[]): void {
  for (const { socket } of connections) socket.destroy()
}

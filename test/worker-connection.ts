// Connections to a service of this process that its worker has accepted: the system decides which process does.
import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { RawConnection } from './raw-http.ts'

export async function connectToWorker(url: string): Promise<RawConnection> {
  for (;;) {
    const connection = new RawConnection(url)
    await once(connection.socket, 'connect')
    const { localPort } = connection.socket
    const inodes = await acceptedFrom([localPort!], Number(new URL(url).port))
    if (!socketsOf(process.pid).has(inodes.get(localPort!)!)) return connection
    connection.socket.destroy()
  }
}

/** The inodes of the server's ends, by the ports of the clients; one that is not accepted yet has none. */
export async function acceptedFrom(clientPorts: readonly number[], port: number): Promise<Map<number, string>> {
  for (;;) {
    const rows = readFileSync('/proc/net/tcp', 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
    const accepted = rows.filter(([, local, , , , , , , , inode]) => portOf(local) === port && inode !== '0')
    const inodes = new Map(accepted.map(([, , remote, , , , , , , inode]) => [portOf(remote), inode!]))
    if (clientPorts.every((clientPort) => inodes.has(clientPort))) return inodes
    await setTimeout(5)
  }
}

function portOf(address = ''): number {
  return Number.parseInt(address.split(':')[1] ?? '', 16)
}

/** The inodes of the sockets that a process has open. */
export function socketsOf(pid: number): Set<string> {
  const links = readdirSync(`/proc/${pid}/fd`).map((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`)
    } catch {
      return ''
    }
  })
  return new Set(links.map((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? ''))
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

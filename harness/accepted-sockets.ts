// Which process has accepted a connection, as Linux tells: with workers the system decides.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'

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

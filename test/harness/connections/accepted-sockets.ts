// Finds on Linux which process of an instance has accepted a connection: with workers the kernel decides.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { until } from '../until.ts'

/** Returns the inode of the server's socket by client port. Waits until all are accepted: before that a socket has no inode. */
export async function acceptedFrom(clientPorts: readonly number[], port: number): Promise<Map<number, string>> {
  let inodes = new Map<number, string>()
  await until(() => {
    const rows = readFileSync('/proc/net/tcp', 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
    const accepted = rows.filter(([, local, , , , , , , , inode]) => portOf(local) === port && inode !== '0')
    inodes = new Map(accepted.map(([, , remote, , , , , , , inode]) => [portOf(remote), inode!]))
    return clientPorts.every((clientPort) => inodes.has(clientPort))
  }, 'the connections are accepted')
  return inodes
}

function portOf(address = ''): number {
  return Number.parseInt(address.split(':')[1] ?? '', 16)
}

/** Returns the inodes of the sockets that a process has open. */
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

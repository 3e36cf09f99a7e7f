// Finds a free port for a server that cannot be started on port 0.
import { randomInt } from 'node:crypto'
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'

/** Below the ports that systems give to servers on port 0 and to outgoing connections: none of those takes the port meanwhile. */
const [FIRST, LAST] = [20_000, 32_000] as const

/**
 * Resolves with a port that no other process gets from here until this one ends: its server may not listen yet, or be between two
 * runs. The UDP port of the same number, which no server here uses, is bound as the mark.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, LAST)
    const mark = createSocket('udp4').unref()
    if (!(await canUse(mark, () => mark.bind({ port, address: '127.0.0.1', exclusive: true })))) continue
    const probe = createServer()
    const isFree = await canUse(probe, () => probe.listen(port, '127.0.0.1'))
    if (!isFree) continue
    probe.close()
    await once(probe, 'close')
    return port
  }
}

/** Whether a socket can be bound as this does it. */
async function canUse(socket: Socket | Server, bind: () => void): Promise<boolean> {
  bind()
  try {
    await once(socket, 'listening')
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return false
    throw error
  }
}

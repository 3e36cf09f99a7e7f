// Finds a free port for a server that cannot be started on port 0.
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/** Below the ports that systems give to servers on port 0 and to outgoing connections: none of those takes the port meanwhile. */
const [FIRST, LAST] = [20_000, 32_000] as const

/** The ports that this process has tried; the servers on those that it was given may not listen yet. */
const tried = new Set<number>()

export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, LAST)
    if (tried.has(port)) continue
    tried.add(port)
    if (await isFree(port)) return port
  }
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer()
  try {
    await once(probe.listen(port, '127.0.0.1'), 'listening')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return false
    throw error
  }
  probe.close()
  await once(probe, 'close')
  return true
}

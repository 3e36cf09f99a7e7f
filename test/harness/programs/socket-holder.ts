// Holds a listening socket and runs `petstore serve` on it, as systemd does for petstore.socket. Restarts the service
// after a clean exit or a signal, and ends if the service fails. Prints the port, and then the id of each process that
// it starts, one per line, to standard error. A word names the program, a link that may lead to another one each time.
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { MAIN } from './instance.ts'

const server = createServer().listen(0, '127.0.0.1')
await once(server, 'listening')
const { fd } = (server as unknown as { _handle: { fd: number } })._handle
process.stderr.write(`${(server.address() as AddressInfo).port}\n`)

// LISTEN_PID must be the id of the service process: the shell knows its own id, and exec keeps it.
const script = 'echo $$ >&2; LISTEN_PID=$$ exec "$0" "$@"'
let isHealthy = true
while (isHealthy) {
  // spawnSync blocks the event loop of this process, so it never accepts a connection itself.
  const { status, signal } = spawnSync('/bin/sh', ['-c', script, process.execPath, process.argv[2] ?? MAIN, 'serve'], {
    env: { ...process.env, LISTEN_FDS: '1' },
    stdio: ['ignore', 'inherit', 'inherit', fd],
  })
  isHealthy = status === 0 || signal !== null
}
process.exit(1)

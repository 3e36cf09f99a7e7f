// For npm run drill pgbouncer: a PostgreSQL, and in front of it a real PgBouncer in transaction mode.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startSharedPostgres, THROUGH_PGBOUNCER } from '../../test/harness/databases/engines.ts'
import { freePort } from '../../test/harness/connections/free-port.ts'
import type { PostgresServer } from '../../test/harness/databases/postgres-server.ts'

const folder = mkdtempSync(join(tmpdir(), 'petstore-pgbouncer-'))
let server: PostgresServer
let bouncer: ChildProcess

export async function globalSetup(): Promise<void> {
  server = await startSharedPostgres()
  const { username, password, port: serverPort } = new URL(server.url)
  const port = await freePort()
  writeFileSync(join(folder, 'users.txt'), `"${username}" "${decodeURIComponent(password)}"\n`)
  writeFileSync(
    join(folder, 'pgbouncer.ini'),
    `[databases]
* = host=127.0.0.1 port=${serverPort}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${join(folder, 'users.txt')}
pool_mode = transaction
default_pool_size = 4
max_client_conn = 500
`,
  )
  // It does not run as root either.
  chmodSync(folder, 0o755)
  const user = process.getuid?.() === 0 ? ['-u', 'nobody'] : []
  bouncer = spawn('/usr/sbin/pgbouncer', ['-q', ...user, join(folder, 'pgbouncer.ini')], { stdio: 'inherit' })
  await once(bouncer, 'spawn')
  process.env[THROUGH_PGBOUNCER] = `127.0.0.1:${port}`
}

export async function globalTeardown(): Promise<void> {
  bouncer.kill('SIGKILL')
  await server.end()
  rmSync(folder, { recursive: true })
}

// Before a whole run of tests (node --test-global-setup): one PostgreSQL for all test files.
import { SHARED_POSTGRES } from '../harness/engines.ts'
import { type PostgresServer, startPostgres } from '../harness/postgres-server.ts'

let server: PostgresServer

export async function globalSetup(): Promise<void> {
  server = await startPostgres()
  process.env[SHARED_POSTGRES] = server.url
}

export async function globalTeardown(): Promise<void> {
  await server.end()
}

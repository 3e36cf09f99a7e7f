// Before a whole run of tests (node --test-global-setup): one PostgreSQL for all test files, one cache of compiled code, and a
// watch over files that hang.
import { tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { startSharedPostgres } from '../harness/databases/engines.ts'
import type { PostgresServer } from '../harness/databases/postgres-server.ts'
import { globalSetup as watchTests } from './time-limit.ts'

let server: PostgresServer

export async function globalSetup(): Promise<void> {
  // Tests write commands as lines, which are split at spaces.
  if (/\s/.test(tmpdir())) throw new Error(`The tests need a TMPDIR whose path has no space, got ${tmpdir()}`)
  watchTests()
  // Each test file, and each service that one starts, is a process that loads the same TypeScript: the cache halves its start.
  // It is the folder that bin/petstore.js uses.
  process.env['NODE_COMPILE_CACHE'] ??= fileURLToPath(new URL('../../node_modules/.cache/compiled', import.meta.url))
  server = await startSharedPostgres()
}

export async function globalTeardown(): Promise<void> {
  await server.end()
}

// The database engines that every suite runs on, each giving as many empty databases as asked for.
import { randomUUID } from 'node:crypto'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { askPostgres } from './ask-postgres.ts'
import { startPostgres } from './postgres-server.ts'

export interface TestDatabase extends AsyncDisposable {
  /** For DATABASE_URL. */
  url: string
}

export interface TestEngine {
  name: string
  newDatabase(): Promise<TestDatabase>
}

/** Set for a whole run of tests (run-setup.ts); a test file that is run alone starts a server of its own. */
export const SHARED_POSTGRES = 'PETSTORE_TEST_POSTGRES'

export const sqlite: TestEngine = {
  name: 'SQLite',
  async newDatabase() {
    const folder = await mkdtempDisposable(join(tmpdir(), 'petstore-test-'))
    return {
      url: `sqlite:${join(folder.path, 'petstore.db')}`,
      [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
    }
  },
}

let server: Promise<string> | undefined

export const postgres: TestEngine = {
  name: 'PostgreSQL',
  async newDatabase() {
    server ??= process.env[SHARED_POSTGRES]
      ? Promise.resolve(process.env[SHARED_POSTGRES])
      : startPostgres().then(({ url }) => url)
    return newPostgresDatabase(await server)
  },
}

/** Set where PostgreSQL is reached through a PgBouncer (pgbouncer-setup.ts): its host and port. */
export const THROUGH_PGBOUNCER = 'PETSTORE_TEST_PGBOUNCER'

/** A database of its own on the server at this address. */
export async function newPostgresDatabase(serverUrl: string): Promise<TestDatabase> {
  const name = `test_${randomUUID().replaceAll('-', '')}`
  const bouncer = process.env[THROUGH_PGBOUNCER]
  await askPostgres(serverUrl, `CREATE DATABASE ${name}`)
  return {
    url: bouncer
      ? `${serverUrl.replace(/@.*$/, `@${bouncer}`)}/${name}?pgbouncer=true`
      : serverUrl.replace(/\/postgres$/, `/${name}`),
    async [Symbol.asyncDispose]() {
      await askPostgres(serverUrl, `DROP DATABASE ${name} WITH (FORCE)`)
    },
  }
}

export const ENGINES: readonly TestEngine[] = [sqlite, postgres]

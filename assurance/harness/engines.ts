// The database engines that tests, drills and benches run on. Each creates empty databases on demand.
import { randomUUID } from 'node:crypto'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readConfig } from '../../src/config.ts'
import { openStore } from '../../src/store/opening/open-store.ts'
import { askPostgres } from './ask-postgres.ts'
import { startPostgres } from './postgres-server.ts'

export interface TestDatabase extends AsyncDisposable {
  /** The value for DATABASE_URL. */
  url: string
}

export interface TestEngine {
  name: string
  newDatabase(): Promise<TestDatabase>
}

/** The variable with the address of the server that a whole test run shares (run-setup.ts). Without it a test file starts a server. */
export const SHARED_POSTGRES = 'TEST_PETSTORE_POSTGRES'

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
    const nodes = process.env[CITUS_NODES]?.split(',')
    const database = await (nodes ? newDistributedDatabase(await server, nodes) : newPostgresDatabase(await server))
    // On a crowded machine the server may take longer to answer than the service waits by default.
    return { ...database, url: withParameters(database.url, 'connect_timeout=30&statement_timeout=60000') }
  },
}

/** Adds query parameters to the address of a database. */
export function withParameters(url: string, parameters: string): string {
  return `${url}${url.includes('?') ? '&' : '?'}${parameters}`
}

/** The variable with the host and port of PgBouncer, in a run that reaches PostgreSQL through it (pgbouncer-setup.ts). */
export const THROUGH_PGBOUNCER = 'TEST_PETSTORE_PGBOUNCER'

/** The variable with the addresses of the nodes of Citus, in a run on distributed databases (drills/citus.ts). */
export const CITUS_NODES = 'TEST_PETSTORE_CITUS_NODES'

/** Creates an empty database on the server at this address. */
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

/** Creates a database on a cluster of Citus, and distributes its animals as the command does; of several at once, that could move only one. */
async function newDistributedDatabase(coordinator: string, nodes: readonly string[]): Promise<TestDatabase> {
  const database = await newClusterDatabase(coordinator, nodes)
  const store = await openStore(readConfig({ database: database.url }, {}).database)
  await store.close()
  for (const trigger of ['pets_count_delete', 'pets_count_update', 'pets_rename'])
    await askPostgres(database.url, `DROP TRIGGER ${trigger} ON pets`)
  await askPostgres(database.url, `SELECT create_distributed_table('pets', 'id', shard_count => ${2 * nodes.length})`)
  return database
}

/** Creates an empty database on the coordinator and the nodes of Citus. */
export async function newClusterDatabase(coordinator: string, nodes: readonly string[]): Promise<TestDatabase> {
  const database = await newPostgresDatabase(coordinator)
  const name = new URL(database.url).pathname
  const onNodes = nodes.map((node) => node.replace(/\/postgres$/, name))
  await Promise.all(nodes.map((node) => askPostgres(node, `CREATE DATABASE ${name.slice(1)}`)))
  await Promise.all([database.url, ...onNodes].map((url) => askPostgres(url, 'CREATE EXTENSION citus')))
  await askPostgres(database.url, `SELECT citus_set_coordinator_host('127.0.0.1', ${new URL(coordinator).port})`)
  for (const node of nodes) await addNode(database.url, node)
  return {
    url: database.url,
    async [Symbol.asyncDispose]() {
      await database[Symbol.asyncDispose]()
      for (const node of nodes) await askPostgres(node, `DROP DATABASE ${name.slice(1)} WITH (FORCE)`)
    },
  }
}

/** Tries again: Citus also writes the roles on the node, and of two databases at once one fails ("tuple concurrently updated"). */
export async function addNode(coordinator: string, node: string, tries = 20): Promise<void> {
  try {
    await askPostgres(coordinator, `SELECT citus_add_node('127.0.0.1', ${new URL(node).port})`)
  } catch (error) {
    if (tries === 1) throw error
    await addNode(coordinator, node, tries - 1)
  }
}

export const ENGINES: readonly TestEngine[] = [sqlite, postgres]

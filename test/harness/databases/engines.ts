// The database engines that tests, drills and benches run on. Each creates databases on demand, empty or with the schema of this
// program, as copies of one that was migrated.
import { randomUUID } from 'node:crypto'
import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { readConfig } from '../../../src/config.ts'
import { openStore } from '../../../src/store/opening/open-store.ts'
import { askPostgres } from './ask-postgres.ts'
import { fastestFolder } from './fastest-folder.ts'
import { type PostgresServer, startPostgres } from './postgres-server.ts'

export interface TestDatabase extends AsyncDisposable {
  /** The value for DATABASE_URL. */
  url: string
}

export interface TestEngine {
  name: string
  /** Creates a database with the schema of this program, and nothing in it. */
  newDatabase(): Promise<TestDatabase>
  /** Creates a database without any table; on SQLite, the address of a file that does not exist. */
  newEmptyDatabase(): Promise<TestDatabase>
}

/** The variable with the address of the server that a whole test run shares (run-setup.ts). Without it a test file starts a server. */
export const SHARED_POSTGRES = 'TEST_PETSTORE_POSTGRES'

export const sqlite: TestEngine = {
  name: 'SQLite',
  async newDatabase() {
    const database = await sqlite.newEmptyDatabase()
    migratedFile ??= migrateFile()
    await writeFile(database.url.replace('sqlite:', ''), await migratedFile, { mode: 0o600 })
    return database
  },
  async newEmptyDatabase() {
    const folder = await mkdtempDisposable(join(fastestFolder(), 'petstore-test-'))
    return {
      url: `sqlite:${join(folder.path, 'petstore.db')}`,
      [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
    }
  },
}

let migratedFile: Promise<Buffer> | undefined

async function migrateFile(): Promise<Buffer> {
  await using database = await sqlite.newEmptyDatabase()
  await migrate(database.url)
  return readFile(database.url.replace('sqlite:', ''))
}

async function migrate(url: string): Promise<void> {
  const store = await openStore(readConfig({ database: url }, {}).database)
  await store.close()
}

/** The variable that is set if that server has the database MIGRATED, as one that somebody else runs may not. */
const COPIES = 'TEST_PETSTORE_COPIES'

/** The database that others are copies of: a copy takes a quarter of the time that a migration takes. */
const MIGRATED = 'migrated'

/** Starts a server that this process and its children share. */
export async function startSharedPostgres(): Promise<PostgresServer> {
  const server = await startPostgres()
  await askPostgres(server.url, `CREATE DATABASE ${MIGRATED}`)
  await migrate(server.url.replace(/\/postgres$/, `/${MIGRATED}`))
  process.env[SHARED_POSTGRES] = server.url
  process.env[COPIES] = 'yes'
  return server
}

let started: Promise<unknown> | undefined

/** Resolves with the address of the server that the tests share. */
async function sharedServer(): Promise<string> {
  if (!process.env[SHARED_POSTGRES]) await (started ??= startSharedPostgres())
  return process.env[SHARED_POSTGRES]!
}

export const postgres: TestEngine = {
  name: 'PostgreSQL',
  async newDatabase() {
    const server = await sharedServer()
    // Written to the log page by page, as is the default, a copy takes twice as long.
    if (process.env[COPIES])
      return patient(await newPostgresDatabase(server, `TEMPLATE ${MIGRATED} STRATEGY file_copy`))
    const database = await postgres.newEmptyDatabase()
    await migrate(database.url)
    return database
  },
  async newEmptyDatabase() {
    const server = await sharedServer()
    const nodes = process.env[CITUS_NODES]?.split(',')
    return patient(await (nodes ? newDistributedDatabase(server, nodes) : newPostgresDatabase(server)))
  },
}

/** Waits longer than the service does by default: on a crowded machine the server may take that time to answer. */
function patient(database: TestDatabase): TestDatabase {
  return { ...database, url: withParameters(database.url, 'connect_timeout=30&statement_timeout=60000') }
}

/** Adds query parameters to the address of a database. */
export function withParameters(url: string, parameters: string): string {
  return `${url}${url.includes('?') ? '&' : '?'}${parameters}`
}

/** The variable with the host and port of PgBouncer, in a run that reaches PostgreSQL through it (pgbouncer-setup.ts). */
export const THROUGH_PGBOUNCER = 'TEST_PETSTORE_PGBOUNCER'

/** The variable with the addresses of the nodes of Citus, in a run on distributed databases (drills/citus.ts). */
export const CITUS_NODES = 'TEST_PETSTORE_CITUS_NODES'

/** Creates a database on the server at this address; an empty one, unless `options` of the statement say otherwise. */
export async function newPostgresDatabase(serverUrl: string, options = ''): Promise<TestDatabase> {
  const name = `test_${randomUUID().replaceAll('-', '')}`
  const bouncer = process.env[THROUGH_PGBOUNCER]
  await askPostgres(serverUrl, `CREATE DATABASE ${name} ${options}`)
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
  await migrate(database.url)
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

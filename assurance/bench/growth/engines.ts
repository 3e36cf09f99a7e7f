// Starts the engines that are measured, with durable commits and otherwise default settings.
import { askPostgres } from '../../../test/harness/databases/ask-postgres.ts'
import { newPostgresDatabase, sqlite as sqliteFiles } from '../../../test/harness/databases/engines.ts'
import { startPostgres } from '../../../test/harness/databases/postgres-server.ts'

export interface BenchEngine {
  name: string
  start(): Promise<BenchServer>
}

export interface BenchServer extends AsyncDisposable {
  version: string
  /** Creates a database and returns its address, for DATABASE_URL. */
  newDatabase(): Promise<string>
  /** Finishes the background work that filling the databases has caused. */
  settle(): Promise<void>
}

const sqlite: BenchEngine = {
  name: 'SQLite',
  async start() {
    const databases = new AsyncDisposableStack()
    return {
      version: `SQLite ${process.versions['sqlite']}`,
      newDatabase: async () => databases.use(await sqliteFiles.newEmptyDatabase()).url,
      async settle() {},
      [Symbol.asyncDispose]: () => databases.disposeAsync(),
    }
  },
}

/** PostgreSQL's defaults, which override the settings that make tests fast. */
const DURABLE = ['fsync=on', 'full_page_writes=on', 'shared_buffers=128MB'] as const

const postgres: BenchEngine = {
  name: 'PostgreSQL',
  async start() {
    const server = await startPostgres(...DURABLE)
    const urls: string[] = []
    const [row] = await askPostgres(server.url, 'SHOW server_version')
    return {
      version: `PostgreSQL ${String(row!['server_version'])}`,
      async newDatabase() {
        const { url } = await newPostgresDatabase(server.url)
        urls.push(url)
        return url
      },
      // Does now what autovacuum and the checkpointer would otherwise do during the measurement.
      async settle() {
        for (const url of urls) await askPostgres(url, 'VACUUM ANALYZE')
        await askPostgres(server.url, 'CHECKPOINT')
      },
      [Symbol.asyncDispose]: () => server.end(),
    }
  },
}

export const ENGINES: readonly BenchEngine[] = [sqlite, postgres]

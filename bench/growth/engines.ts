// The engines that are measured: durable, and otherwise with their default settings.
import { askPostgres } from '../../harness/ask-postgres.ts'
import { newPostgresDatabase, sqlite as sqliteFiles } from '../../harness/engines.ts'
import { startPostgres } from '../../harness/postgres-server.ts'

export interface BenchEngine {
  name: string
  start(): Promise<BenchServer>
}

export interface BenchServer extends AsyncDisposable {
  version: string
  /** An address for DATABASE_URL. */
  newDatabase(): Promise<string>
  /** Ends what the filling left to do in the background. */
  settle(): Promise<void>
}

const sqlite: BenchEngine = {
  name: 'SQLite',
  async start() {
    const databases = new AsyncDisposableStack()
    return {
      version: `SQLite ${process.versions['sqlite']}`,
      newDatabase: async () => databases.use(await sqliteFiles.newDatabase()).url,
      async settle() {},
      [Symbol.asyncDispose]: () => databases.disposeAsync(),
    }
  },
}

/** PostgreSQL's own defaults in place of what makes the tests fast. */
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
      // What autovacuum and the checkpointer would do within minutes, done before the measuring instead of during it.
      async settle() {
        for (const url of urls) await askPostgres(url, 'VACUUM ANALYZE')
        await askPostgres(server.url, 'CHECKPOINT')
      },
      [Symbol.asyncDispose]: () => server.end(),
    }
  },
}

export const ENGINES: readonly BenchEngine[] = [sqlite, postgres]

// The engines that are measured: durable, and otherwise with their default settings.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import connectTo from 'postgres'
import { newPostgresDatabase } from '../../test/engines.ts'
import { startPostgres } from '../../test/postgres-server.ts'

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
    const folder = await mkdtemp(join(tmpdir(), 'petstore-growth-'))
    let databases = 0
    return {
      version: `SQLite ${process.versions['sqlite']}`,
      async newDatabase() {
        databases += 1
        return `sqlite:${join(folder, `${databases}.db`)}`
      },
      async settle() {},
      [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
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
    const [row] = await query(server.url, 'SHOW server_version')
    return {
      version: `PostgreSQL ${String(row!['server_version'])}`,
      async newDatabase() {
        const { url } = await newPostgresDatabase(server.url)
        urls.push(url)
        return url
      },
      // What autovacuum and the checkpointer would do within minutes, done before the measuring instead of during it.
      async settle() {
        for (const url of urls) await query(url, 'VACUUM ANALYZE')
        await query(server.url, 'CHECKPOINT')
      },
      [Symbol.asyncDispose]: () => server.end(),
    }
  },
}

async function query(url: string, statement: string): Promise<Record<string, unknown>[]> {
  const sql = connectTo(url, { max: 1 })
  try {
    return await sql.unsafe(statement)
  } finally {
    await sql.end()
  }
}

export const ENGINES: readonly BenchEngine[] = [sqlite, postgres]

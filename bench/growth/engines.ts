// The engines that are measured, as a deployment would run them: durable, with their default settings.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

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

export const ENGINES: readonly BenchEngine[] = [sqlite]

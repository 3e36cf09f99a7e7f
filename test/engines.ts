// The database engines that every suite runs on, each giving as many empty databases as asked for.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface TestDatabase extends AsyncDisposable {
  /** For DATABASE_URL. */
  url: string
}

export interface TestEngine {
  name: string
  newDatabase(): Promise<TestDatabase>
}

const sqlite: TestEngine = {
  name: 'SQLite',
  async newDatabase() {
    const folder = await mkdtemp(join(tmpdir(), 'petstore-test-'))
    return {
      url: `sqlite:${join(folder, 'petstore.db')}`,
      [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
    }
  },
}

export const ENGINES: readonly TestEngine[] = [sqlite]

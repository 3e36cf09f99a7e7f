// Starts what is measured: this service with its default settings, and the ceiling. Peers are in peers.ts.
import { fileURLToPath } from 'node:url'
import { sqlite } from '../../test/harness/databases/engines.ts'
import { createKey, listening, petstore } from '../../test/harness/programs/instance.ts'
import { firstLine, stop } from '../../test/harness/programs/processes.ts'
import type { FixedAnswer } from './ceiling.ts'
import { startOn } from './placement.ts'
import type { Work } from './works.ts'

export interface Server extends AsyncDisposable {
  /** Returns the address and path for the requests of a work. */
  target(work: Work): { base: string; path: string }
  key: string
  pid: number | undefined
}

/** A subject with two servers: one only for reads, one for writes. */
export interface Subject {
  name: string
  servers: Record<'read' | 'write', Server>
  /** The works that it is left out of. */
  without?: readonly string[]
}

const PETSTORE = fileURLToPath(new URL('../../bin/petstore', import.meta.url))

export interface Database extends AsyncDisposable {
  url: string
  key: string
}

/** Creates a SQLite file with this many animals, an account and a key. */
export async function newDatabase(animals: number): Promise<Database> {
  const database = await sqlite.newEmptyDatabase()
  return { ...database, key: await fillDatabase(database.url, animals) }
}

/** Adds animals, an account and a key, by another checkout if `main` is its entry point; returns the key. */
export async function fillDatabase(url: string, animals: number, main?: string): Promise<string> {
  const key = await createKey(url, main)
  petstore(url, ['seed', '--count', String(animals)], '', main)
  return key
}

/** Starts this service as a separate process, with the default settings except `settings`. */
export async function startService(
  { url, key }: Pick<Database, 'url' | 'key'>,
  { settings = [], program = PETSTORE }: { settings?: readonly string[]; program?: string | undefined } = {},
): Promise<Server> {
  const child = startOn('server', program, ['serve', '--port', '0', '--database', url, ...settings])
  const { url: base } = await listening(child)
  return {
    target: ({ path }) => ({ base, path: `/v1${path}` }),
    key,
    pid: child.pid,
    [Symbol.asyncDispose]: () => stop(child),
  }
}

/** Starts the ceiling: for each work it answers the same bytes as this service. */
export async function startCeiling(works: readonly Work[], answers: readonly FixedAnswer[]): Promise<Server> {
  const file = fileURLToPath(new URL('ceiling.ts', import.meta.url))
  const child = startOn('server', process.execPath, [file, JSON.stringify(answers)])
  const { ports } = await firstLine(child, (line) => JSON.parse(line) as { ports: number[] })
  return {
    target: (work) => ({ base: `http://127.0.0.1:${ports[works.indexOf(work)]!}`, path: `/v1${work.path}` }),
    key: 'none',
    pid: child.pid,
    [Symbol.asyncDispose]: () => stop(child),
  }
}

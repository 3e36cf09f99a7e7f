// Starts what is measured: this service with its default settings, and the ceiling. Peers are in peers.ts.
import { fileURLToPath } from 'node:url'
import { sqlite } from '../harness/engines.ts'
import { createKey, listening, petstore } from '../harness/instance.ts'
import { firstLine, stop } from '../harness/processes.ts'
import type { FixedAnswer } from './ceiling.ts'
import { type Core, startOn } from './placement.ts'
import type { Work } from './rows.ts'

export interface Server extends AsyncDisposable {
  /** Returns the address and path for the requests of a row. */
  target(row: Work): { base: string; path: string }
  key: string
  pid: number | undefined
}

export interface Service extends Server {
  /** The address of the admin port; undefined if it has none. */
  admin: string | undefined
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

/** Adds animals, an account and a key; returns the key. */
export async function fillDatabase(url: string, animals: number): Promise<string> {
  const key = await createKey(url)
  petstore(url, ['seed', '--count', String(animals)])
  return key
}

/** Starts this service as a separate process, with the default settings except `settings`. */
export async function startService(
  { url, key }: Pick<Database, 'url' | 'key'>,
  {
    settings = [],
    core = 'server',
    program = PETSTORE,
  }: { settings?: readonly string[]; core?: Core; program?: string | undefined } = {},
): Promise<Service> {
  const child = startOn(core, program, ['serve', '--port', '0', '--database', url, ...settings])
  const { url: base, admin } = await listening(child)
  return {
    target: ({ path }) => ({ base, path: `/v1${path}` }),
    key,
    pid: child.pid,
    admin,
    [Symbol.asyncDispose]: () => stop(child),
  }
}

/** Starts a script of bench/ that serves without a key and first prints its ports. */
export async function startScript(
  script: string,
  parameters: readonly string[],
  target: (ports: readonly number[], row: Work) => { base: string; path: string },
): Promise<Server> {
  const file = fileURLToPath(new URL(script, import.meta.url))
  const child = startOn('server', process.execPath, [file, ...parameters])
  const { ports } = await firstLine(child, (line) => JSON.parse(line) as { ports: number[] })
  return {
    target: (row) => target(ports, row),
    key: 'none',
    pid: child.pid,
    [Symbol.asyncDispose]: () => stop(child),
  }
}

/** Starts the ceiling: for each row it answers the same bytes as this service. */
export async function startCeiling(rows: readonly Work[], answers: readonly FixedAnswer[]): Promise<Server> {
  return startScript('ceiling.ts', [JSON.stringify(answers)], (ports, row) => ({
    base: `http://127.0.0.1:${ports[rows.indexOf(row)]!}`,
    path: `/v1${row.path}`,
  }))
}

/** Returns the milliseconds from the start of the process until it listens. */
export async function timeToListen({ url }: Pick<Database, 'url'>): Promise<number> {
  const started = performance.now()
  await using _server = await startService({ url, key: '' })
  return performance.now() - started
}

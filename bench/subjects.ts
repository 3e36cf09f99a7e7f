// What is measured: this service as it is shipped, and the ceiling. Peers are in peers.ts.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { FixedAnswer } from './ceiling.ts'
import { type Core, firstLine, output, start, stop } from './processes.ts'
import type { Row } from './rows.ts'

export interface Server extends AsyncDisposable {
  /** Where a row's requests go: address and path. */
  target(row: Row): { base: string; path: string }
  key: string
  pid: number | undefined
}

export interface Service extends Server {
  /** Address of its admin port; undefined where it was given none. */
  admin: string | undefined
}

const PETSTORE = fileURLToPath(new URL('../bin/petstore', import.meta.url))

/** A command of ours, run to its end. */
export function petstore(words: readonly string[], input?: string): Promise<string> {
  return output({ command: PETSTORE, parameters: words, core: 'load' }, input)
}

export interface Database extends AsyncDisposable {
  url: string
  key: string
}

/** A SQLite file with so many animals, an account and a key. */
export async function newDatabase(animals: number): Promise<Database> {
  const folder = await mkdtemp(join(tmpdir(), 'petstore-bench-'))
  const url = `sqlite:${join(folder, 'petstore.db')}`
  const key = await fillDatabase(url, animals)
  return { url, key, [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) }
}

/** Adds the animals, an account and its key; gives the key. */
export async function fillDatabase(url: string, animals: number): Promise<string> {
  await petstore(['migrate', '--environment', 'staging', '--database', url])
  await petstore(['seed', '--count', String(animals), '--database', url])
  await petstore(
    ['account', 'create', 'bench@example.com', '--password-stdin', '--database', url],
    'correct horse battery',
  )
  const made = await petstore([
    'key',
    'create',
    '--account',
    'bench@example.com',
    '--name',
    'bench',
    '--json',
    '--database',
    url,
  ])
  return (JSON.parse(made) as { key: string }).key
}

/** This service as a process of its own, with its default settings and these. */
export async function startService(
  { url, key }: Pick<Database, 'url' | 'key'>,
  { settings = [], core = 'server' }: { settings?: readonly string[]; core?: Core } = {},
): Promise<Service> {
  const child = start({ command: PETSTORE, parameters: ['serve', '--port', '0', '--database', url, ...settings], core })
  const { url: base, admin } = await firstLine(child, listening)
  return {
    target: ({ path }) => ({ base, path: `/v1${path}` }),
    key,
    pid: child.pid,
    admin,
    [Symbol.asyncDispose]: () => stop(child),
  }
}

function listening(line: string): { url: string; admin?: string } | undefined {
  const entry = JSON.parse(line) as { msg: string; url: string; admin?: string }
  return entry.msg === 'listening' ? entry : undefined
}

/** The ceiling for each row: the same bytes as this service answers there. */
export async function startCeiling(rows: readonly Row[], answers: readonly FixedAnswer[]): Promise<Server> {
  const child = start({
    command: process.execPath,
    parameters: [fileURLToPath(new URL('ceiling.ts', import.meta.url)), JSON.stringify(answers)],
    core: 'server',
  })
  const { ports } = await firstLine(child, (line) => JSON.parse(line) as { ports: number[] })
  return {
    target: (row) => ({ base: `http://127.0.0.1:${ports[rows.indexOf(row)]!}`, path: `/v1${row.path}` }),
    key: 'none',
    pid: child.pid,
    [Symbol.asyncDispose]: () => stop(child),
  }
}

/** Milliseconds from the start of the process to the first request it could take. */
export async function timeToListen({ url }: Pick<Database, 'url'>): Promise<number> {
  const started = performance.now()
  await using _server = await startService({ url, key: '' })
  return performance.now() - started
}

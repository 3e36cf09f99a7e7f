// The peers: other tools that could serve this API. Their packages are installed on demand in bench/peers, at pinned versions. Go
// and its drivers come from Debian packages, which a bench cannot install.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { askPostgres } from '../../test/harness/databases/ask-postgres.ts'
import { newPostgresDatabase } from '../../test/harness/databases/engines.ts'
import { firstLine, stop } from '../../test/harness/programs/processes.ts'
import { GENERATOR, PEERS } from './load.ts'
import { has, startOn } from './placement.ts'
import type { Server, Subject } from './subjects.ts'

const KEY = 'bench'
const BUN = `@oven/bun-${process.platform}-${process.arch === 'arm64' ? 'aarch64' : process.arch}`

const FOLDER = fileURLToPath(PEERS)
const file = (...names: string[]) => join(FOLDER, ...names)
const installed = (name: string, path: string) => file('node_modules', name, path)
const GO_BINARY = file('dist', 'petstore')

export interface Peer {
  /** The name for --peers. */
  id: string
  name: string
  /** The packages that it needs, from bench/peers/package.json. */
  packages: readonly string[]
  /** Builds a peer that npm does not install; returns its version, or undefined if it cannot be built here. */
  build?: () => string | undefined
  /** Starts it with the address of a database that `fill` has filled; for SQLite a path. */
  start: (address: string) => Promise<Server>
}

const onNode = (script: string, driver = 'sqlite') => byHand(driver, process.execPath, file(script))
const onBun = (driver: string) => byHand(driver, installed(BUN, 'bin/bun'), file('hono.js'))
const go = { packages: [], build: buildGo }

export const SQLITE_PEERS: readonly Peer[] = [
  { id: 'hono', name: 'Hono on Bun', packages: ['hono', BUN], start: onBun('sqlite') },
  { ...go, id: 'go', name: 'Go net/http', start: byHand('sqlite', GO_BINARY) },
  { id: 'fastify', name: 'Fastify', packages: ['fastify'], start: onNode('fastify.js') },
]

export const POSTGRES_PEERS: readonly Peer[] = [
  {
    id: 'fastify-postgres',
    name: 'Fastify, postgres',
    packages: ['fastify', 'postgres'],
    start: onNode('fastify.js', 'postgres'),
  },
  {
    id: 'fastify-pg',
    name: 'Fastify, pg',
    packages: ['fastify', 'pg'],
    start: onNode('fastify.js', 'pg'),
  },
  { ...go, id: 'go-pgx', name: 'Go, pgx', start: byHand('pgx', GO_BINARY) },
  { id: 'bun-sql', name: 'Hono, Bun.sql', packages: ['hono', 'postgres', BUN], start: onBun('bun') },
]

const PINNED = (
  JSON.parse(readFileSync(file('package.json'), 'utf8')) as { optionalDependencies: Record<string, string> }
).optionalDependencies

/** Installs the packages of the peers and of the load generator. Returns each peer's versions, or undefined if unavailable. */
export function install(peers: readonly Peer[]): Map<Peer, string | undefined> {
  const packages = [...peers.flatMap((peer) => peer.packages), ...(GENERATOR === 'autocannon' ? ['autocannon'] : [])]
  if (!packages.every(isInstalled)) {
    const path = [dirname(process.execPath), process.env['PATH']].join(delimiter)
    spawnSync('npm', ['install', '--no-package-lock', '--no-audit', '--no-fund', '--ignore-scripts'], {
      cwd: FOLDER,
      env: { ...process.env, PATH: path },
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  }
  return new Map(peers.map((peer) => [peer, versionsOf(peer)]))
}

function versionsOf({ packages, build }: Peer): string | undefined {
  if (build) return build()
  return packages.every(isInstalled) ? packages.map((name) => `${name} ${PINNED[name]}`).join(', ') : undefined
}

function isInstalled(name: string): boolean {
  const manifest = installed(name, 'package.json')
  return (
    existsSync(manifest) && (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version === PINNED[name]
  )
}

/** Builds the Go peer with Debian's Go packages, whose sources are in one GOPATH. */
function buildGo(): string | undefined {
  if (!has('go')) return undefined
  const env = { ...process.env, GO111MODULE: 'off', GOPATH: '/usr/share/gocode' }
  const { status } = spawnSync('go', ['build', '-o', GO_BINARY, 'petstore.go'], {
    cwd: FOLDER,
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  return status === 0 ? spawnSync('go', ['env', 'GOVERSION'], { encoding: 'utf8' }).stdout.trim() : undefined
}

/** Starts a peer with one server for reads and one for writes, like the service, each on this many animals. */
export async function startPeer(
  peer: Peer,
  stack: AsyncDisposableStack,
  animals: number,
  postgres?: string,
): Promise<Subject> {
  const folder = await mkdtemp(join(tmpdir(), 'petstore-bench-'))
  stack.defer(() => rm(folder, { recursive: true }))
  const start = async (name: string) => {
    const address = postgres === undefined ? join(folder, name) : stack.use(await newPostgresDatabase(postgres)).url
    await fill(address, animals)
    return stack.use(await peer.start(address))
  }
  return {
    name: peer.name,
    servers: { read: await start('read'), write: await start('write') },
  }
}

/** Returns a function that starts a program of bench/peers with a database, the key and the name of a driver; it prints its port. */
function byHand(driver: string, command: string, ...words: string[]): Peer['start'] {
  return async (address) => {
    // Limits Go to one thread, like the other peers: by default it uses all cores.
    const child = startOn('server', command, [...words, address, KEY, driver], { env: { GOMAXPROCS: '1' } })
    const { port } = await firstLine(child, (line) => JSON.parse(line) as { port: number })
    return {
      target: ({ path }) => ({ base: `http://127.0.0.1:${port}`, path: `/v1${path}` }),
      key: KEY,
      pid: child.pid,
      [Symbol.asyncDispose]: () => stop(child),
    }
  }
}

const ID = {
  sqlite: 'INTEGER PRIMARY KEY AUTOINCREMENT',
  postgres: 'bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY',
}

async function fill(address: string, animals: number): Promise<void> {
  const engine = address.startsWith('postgres:') ? 'postgres' : 'sqlite'
  const table = `CREATE TABLE pets (id ${ID[engine]}, name TEXT NOT NULL, "categoryId" BIGINT NOT NULL, status TEXT NOT NULL);`
  const text = table + readFileSync(file('pets.sql'), 'utf8').replace(':animals', String(animals))
  if (engine === 'postgres') {
    await askPostgres(address, `${text}; ANALYZE pets`)
    return
  }
  using db = new DatabaseSync(address)
  db.exec(`PRAGMA journal_mode = WAL; ${text}`)
}

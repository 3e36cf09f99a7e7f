// The peers: other tools that could serve this API. Their packages are installed on demand in bench/peers, at pinned versions. Go
// and its SQLite driver come from Debian packages, which a bench cannot install.
import { type ChildProcess, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { freePort } from '../harness/free-port.ts'
import { firstLine, stop } from '../harness/processes.ts'
import { until } from '../harness/until.ts'
import { GENERATOR, PEERS } from './load.ts'
import type { Subject } from './measure.ts'
import { has, startOn } from './placement.ts'
import type { Row } from './rows.ts'
import type { Server } from './subjects.ts'

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
  supports: (row: Row) => boolean
  start: (path: string) => Promise<Server>
}

const all = () => true
const isPlain = ({ id }: Row) => ['list-20', 'list-100', 'get', 'create'].includes(id)
const onNode = (script: string) => byHand(process.execPath, file(script))

export const ALL_PEERS: readonly Peer[] = [
  {
    id: 'hono',
    name: 'Hono on Bun',
    packages: ['hono', BUN],
    supports: all,
    start: byHand(installed(BUN, 'bin/bun'), file('hono.js')),
  },
  { id: 'go', name: 'Go net/http', packages: [], build: buildGo, supports: all, start: byHand(GO_BINARY) },
  { id: 'fastify', name: 'Fastify, by hand', packages: ['fastify'], supports: all, start: onNode('fastify.js') },
  { id: 'express', name: 'Express, by hand', packages: ['express'], supports: all, start: onNode('express.js') },
  { id: 'json-server', name: 'json-server', packages: ['json-server'], supports: isPlain, start: startJsonServer },
  { id: 'prism', name: 'Prism', packages: ['@stoplight/prism-cli'], supports: isPlain, start: startPrism },
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

/** Starts a peer with one server for reads and one for writes, like the service. */
export async function startPeer(peer: Peer, stack: AsyncDisposableStack): Promise<Subject> {
  const folder = await mkdtemp(join(tmpdir(), 'petstore-bench-'))
  stack.defer(() => rm(folder, { recursive: true }))
  const read = stack.use(await peer.start(join(folder, 'read')))
  const write = stack.use(await peer.start(join(folder, 'write')))
  return { name: peer.name, supports: peer.supports, servers: { read, write } }
}

/** Returns a function that starts a program of bench/peers with a database file and the key; it prints its port. */
function byHand(command: string, ...words: string[]): Peer['start'] {
  return async (path) => {
    const database = `${path}.db`
    fill(database)
    // Limits Go to one thread, like the other peers: by default it uses all cores.
    const child = startOn('server', command, [...words, database, KEY], { env: { GOMAXPROCS: '1' } })
    const { port } = await firstLine(child, (line) => JSON.parse(line) as { port: number })
    return served(child, port, (row) => `/v1${row.path}`)
  }
}

function fill(database: string): void {
  using db = new DatabaseSync(database)
  db.exec(readFileSync(file('pets.sql'), 'utf8'))
}

async function startJsonServer(path: string): Promise<Server> {
  const pets = Array.from({ length: 1000 }, (_, index) => ({
    id: index + 1,
    name: 'Bella the Brave',
    categoryId: 3,
    status: 'available',
  }))
  await writeFile(`${path}.json`, JSON.stringify({ pets }))
  const port = await freePort()
  const child = startOn('server', process.execPath, [
    installed('json-server', 'lib/cli/bin.js'),
    '--quiet',
    '--host',
    '127.0.0.1',
    '--port',
    String(port),
    `${path}.json`,
  ])
  return whenServing(
    served(child, port, ({ path: asked }) =>
      asked.replace(/^\/pets$/, '/pets?_limit=20').replace('limit=100', '_limit=100'),
    ),
  )
}

async function startPrism(): Promise<Server> {
  const port = await freePort()
  const document = fileURLToPath(new URL('../../openapi.json', import.meta.url))
  const child = startOn('server', process.execPath, [
    installed('@stoplight/prism-cli', 'dist/index.js'),
    'mock',
    '--verboseLevel',
    'fatal',
    '--host',
    '127.0.0.1',
    '--port',
    String(port),
    document,
  ])
  return whenServing(served(child, port, ({ path }) => path))
}

function served(child: ChildProcess, port: number, pathOf: (row: Row) => string): Server {
  return {
    target: (row) => ({ base: `http://127.0.0.1:${port}`, path: pathOf(row) }),
    key: KEY,
    pid: child.pid,
    [Symbol.asyncDispose]: () => stop(child),
  }
}

/** Waits until a server answers that does not print when it listens. */
async function whenServing(server: Server): Promise<Server> {
  const { base } = server.target({ path: '/' } as Row)
  await until(async () => (await fetch(base)).status > 0, `something listens at ${base}`)
  return server
}

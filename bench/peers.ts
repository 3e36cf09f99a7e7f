// The peers: what else one could pick for this job. Installed on demand below bench/peers, at pinned versions.
import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isInstalled, PEERS } from './load.ts'
import type { Subject } from './measure.ts'
import { firstLine, start, stop } from './processes.ts'
import type { Row } from './rows.ts'
import type { Server } from './subjects.ts'

const FOLDER = fileURLToPath(PEERS)
const KEY = 'bench'

interface Peer {
  name: string
  package: string
  takes: (row: Row) => boolean
  start: (folder: string) => Promise<Server>
}

const isPlain = ({ id }: Row) => ['list-20', 'list-100', 'get', 'create'].includes(id)

export const ALL_PEERS: readonly Peer[] = [
  { name: 'Fastify, by hand', package: 'fastify', takes: () => true, start: (folder) => startByHand('fastify.js', folder) },
  { name: 'Express, by hand', package: 'express', takes: () => true, start: (folder) => startByHand('express.js', folder) },
  { name: 'json-server', package: 'json-server', takes: isPlain, start: startJsonServer },
  { name: 'Prism', package: '@stoplight/prism-cli', takes: isPlain, start: startPrism },
]

/** Installs what is missing, on this Node; tells which packages could not be had. */
export function install(): string[] {
  const missing = () => [...ALL_PEERS.map((peer) => peer.package), 'autocannon'].filter((name) => !isInstalled(name))
  if (missing().length > 0) {
    const path = [dirname(process.execPath), process.env['PATH']].join(delimiter)
    spawnSync('npm', ['install', '--no-package-lock', '--no-audit', '--no-fund', '--ignore-scripts'], {
      cwd: FOLDER,
      env: { ...process.env, PATH: path },
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  }
  return missing()
}

/** One server for reads and one for writes, as the service has. */
export async function startPeer(peer: Peer, stack: AsyncDisposableStack): Promise<Subject> {
  const folder = await mkdtemp(join(tmpdir(), 'petstore-bench-'))
  stack.defer(() => rm(folder, { recursive: true }))
  const read = stack.use(await peer.start(join(folder, 'read')))
  const write = stack.use(await peer.start(join(folder, 'write')))
  return { name: peer.name, takes: peer.takes, servers: { read, write } }
}

async function startByHand(file: string, path: string): Promise<Server> {
  const child = start({ command: process.execPath, parameters: [join(FOLDER, file), `${path}.db`, KEY], core: 'server' })
  const { port } = await firstLine(child, (line) => JSON.parse(line) as { port: number })
  return served(child, port, (row) => `/v1${row.path}`)
}

async function startJsonServer(path: string): Promise<Server> {
  const pets = Array.from({ length: 1000 }, (_, index) => ({ id: index + 1, name: 'Bella the Brave', categoryId: 3, status: 'available' }))
  await writeFile(`${path}.json`, JSON.stringify({ pets }))
  const port = await freePort()
  const child = start({
    command: process.execPath,
    parameters: [binary('json-server', 'lib/cli/bin.js'), '--quiet', '--host', '127.0.0.1', '--port', String(port), `${path}.json`],
    core: 'server',
  })
  return whenServing(served(child, port, ({ path: asked }) => asked.replace(/^\/pets$/, '/pets?_limit=20').replace('limit=100', '_limit=100')))
}

async function startPrism(): Promise<Server> {
  const port = await freePort()
  const document = fileURLToPath(new URL('../openapi.json', import.meta.url))
  const child = start({
    command: process.execPath,
    parameters: [binary('@stoplight/prism-cli', 'dist/index.js'), 'mock', '--verboseLevel', 'fatal', '--host', '127.0.0.1', '--port', String(port), document],
    core: 'server',
  })
  return whenServing(served(child, port, ({ path }) => path))
}

function served(child: ReturnType<typeof start>, port: number, pathOf: (row: Row) => string): Server {
  return {
    target: (row) => ({ base: `http://127.0.0.1:${port}`, path: pathOf(row) }),
    key: KEY,
    pid: child.pid,
    [Symbol.asyncDispose]: () => stop(child),
  }
}

function binary(name: string, file: string): string {
  return join(dirname(createRequire(PEERS).resolve(`${name}/package.json`)), file)
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => {
    server.close(resolve)
  })
  return port
}

/** For those that don't say when they listen. */
async function whenServing(server: Server): Promise<Server> {
  const { base } = server.target({ path: '/' } as Row)
  for (let tries = 0; tries < 300; tries += 1) {
    const up = await fetch(base).then(() => true, () => false)
    if (up) return server
    await new Promise((resolve) => {
      setTimeout(resolve, 100)
    })
  }
  throw new Error(`nothing listens at ${base}`)
}

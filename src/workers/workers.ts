// The workers of an instance, as its first process sees them: starts them, replaces one that ends or hangs, and speaks to all.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import module from 'node:module'
import { extname } from 'node:path'
import type { Server } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { Config } from '../config.ts'
import type { Timeouts } from '../http/app.ts'
import type { Metrics, Snapshot } from '../http/metrics.ts'
import type { Log } from '../log.ts'
import type { ConnectionCounts, Shared, Told } from '../http/shared.ts'
import { IN_MEMORY } from '../store/sqlite/database.ts'
import { CannotOpenStore, StoreUnavailable } from '../store/store.ts'
import { withinTime } from '../store/within-time.ts'
import { Channel } from './channel.ts'
import type { ForFirst, ForWorker } from './protocol.ts'

/** A worker that ends sooner after its start than this ended young; so many of them in a row are a crash loop. */
const YOUNG_MS = 5000
const CRASH_LOOP = 5
const REPLACE_AFTER_MS = 100

/** The system may refuse a new process, as when it runs out of file descriptors. */
const TRY_AGAIN_AFTER_MS = 1000

/** A worker waits for the lock of a SQLite file for 10 s at most when it starts. */
const START_WITHIN_MS = 30_000

/** A worker that hangs holds up neither the scrape nor a revocation: by then it has forgotten the key anyway. */
const TOLD_WITHIN_MS = 3000

/** Every worker is asked for a sign of life this often. One that hangs for two of these intervals, 10 s, is replaced. */
const HEARTBEAT_MS = 5000
const UNANSWERED_MOST = 2

/** A worker has as long to stop as the first process has; then it is ended. */
const STOP_WITHIN_MS = 8000

const PROGRAM = fileURLToPath(new URL(`../worker${extname(import.meta.url)}`, import.meta.url))

export interface WorkersParts {
  config: Config
  log: Log
  timeouts: Timeouts | undefined
  shared: Shared
  connections: ConnectionCounts
  /** Its listening socket is shared: what a worker that ends has not accepted, another process accepts. */
  server: Server
  metrics: Metrics | undefined
  /** What the first process does when a worker tells all others to. */
  told: Record<Told, () => void | Promise<void>>
  /** Called if workers end again and again, or one can't go on with its store. */
  onBroken: (error: Error) => void
}

/** Resolves when all workers accept connections. */
export async function startWorkers(parts: WorkersParts): Promise<Workers> {
  const { database, workers: processes } = parts.config
  if (database.engine === 'sqlite' && database.path === IN_MEMORY) {
    throw new CannotOpenStore(
      'A database in memory belongs to one process. Use --workers 1, or a file with --database.',
    )
  }
  const workers = new Workers(parts)
  await workers.start(processes - 1)
  return workers
}

interface Worker {
  child: ChildProcess
  channel: Channel<ForWorker>
  startedAt: number
  serves: boolean
  /** The signs of life that it was asked for and has not given. */
  unanswered: number
  /** What it had measured when it was last asked: counters must not fall when it ends. */
  snapshot: Snapshot | undefined
}

export class Workers {
  readonly #parts: WorkersParts
  readonly #workers = new Set<Worker>()
  /** What workers that have ended had counted, added up. */
  #ended: Promise<Snapshot> = Promise.resolve([])
  readonly #heartbeat: NodeJS.Timeout
  #youngEnds = 0
  #draining = false
  #stopping = false

  constructor(parts: WorkersParts) {
    this.#parts = parts
    this.#heartbeat = setInterval(() => this.#askForLife(), HEARTBEAT_MS).unref()
  }

  async start(count: number): Promise<void> {
    try {
      await Promise.all(Array.from({ length: count }, () => this.#startOne()))
    } catch (error) {
      await this.stop()
      throw error
    }
  }

  /** Resolves when all workers, but the one that asked for it, have done this, have failed, or have not answered in time. */
  async tell(what: Told, asker?: ChildProcess): Promise<void> {
    const others = [...this.#workers].filter(({ child }) => child !== asker)
    await Promise.allSettled(others.map(({ channel }) => withinTime(channel.call('tell', what), TOLD_WITHIN_MS)))
  }

  async snapshots(): Promise<Snapshot[]> {
    await Promise.all(
      [...this.#workers].map(async (worker) => {
        worker.snapshot = await withinTime(worker.channel.call('snapshot'), TOLD_WITHIN_MS).catch(() => worker.snapshot)
      }),
    )
    // Both at one moment: a worker that ends meanwhile is counted once.
    const [ended, running] = [this.#ended, [...this.#workers].map(({ snapshot }) => snapshot ?? [])]
    return [await ended, ...running]
  }

  drain(): void {
    this.#draining = true
    for (const { channel } of this.#workers) void channel.call('drain').catch(() => {})
  }

  async stop(): Promise<void> {
    this.#stopping = true
    clearInterval(this.#heartbeat)
    await Promise.all([...this.#workers].map((worker) => this.#stopOne(worker)))
  }

  async #startOne(): Promise<void> {
    const { config, timeouts } = this.#parts
    const child = await this.#fork()
    const channel = new Channel<ForWorker>(child, this.#callableBy(child))
    const startedAt = performance.now()
    const worker = { child, channel, startedAt, serves: false, unanswered: 0, snapshot: undefined }
    this.#workers.add(worker)
    child.once('exit', (code, signal) => this.#ends(worker, code, signal))
    try {
      const started = channel.call('start', { config, timeouts })
      if (this.#draining) void channel.call('drain').catch(() => {})
      await withinTime(started, START_WITHIN_MS)
      worker.serves = true
    } catch (error) {
      child.kill('SIGKILL')
      throw error
    }
  }

  #callableBy(child: ChildProcess): ForFirst {
    const { shared, server, told, connections } = this.#parts
    return {
      ...shared,
      lease: shared.lease!,
      tellOthers: async (what) => {
        await Promise.allSettled([told[what](), this.tell(what, child)])
      },
      allowConnections: (open) => connections.allow(child, open),
      sendSocket: () =>
        new Promise((resolve, reject) => {
          if (this.#stopping) throw new Error('the service is stopping')
          child.send('socket', server, {}, (error) => (error === null ? resolve() : reject(error)))
        }),
      fail: (message) => this.#parts.onBroken(new StoreUnavailable(message)),
    }
  }

  /** Rejects if the system refuses, and tries again later. */
  async #fork(): Promise<ChildProcess> {
    const compiled = module.getCompileCacheDir?.()
    try {
      const child = fork(PROGRAM, {
        execArgv: process.execArgv.filter((argument) => argument.startsWith('--max-')),
        env: { ...process.env, ...(compiled !== undefined && { NODE_COMPILE_CACHE: compiled }) },
        serialization: 'advanced',
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      })
      if (child.pid === undefined) await once(child, 'spawn')
      // A signal or a message that does not reach it: its exit tells why.
      return child.on('error', () => {})
    } catch (error) {
      this.#startAfter(TRY_AGAIN_AFTER_MS)
      throw error
    }
  }

  #startAfter(ms: number): void {
    setTimeout(() => {
      if (this.#stopping) return
      this.#startOne().catch((error: unknown) => {
        if (!this.#stopping) this.#parts.log.error({ error }, 'a worker could not start')
      })
    }, ms)
  }

  #askForLife(): void {
    for (const worker of [...this.#workers].filter(({ serves }) => serves)) {
      if (worker.unanswered >= UNANSWERED_MOST) {
        this.#parts.log.error({ worker: worker.child.pid }, 'a worker hangs and is ended')
        worker.child.kill('SIGKILL')
        continue
      }
      worker.unanswered += 1
      worker.channel.call('ping').then(
        () => (worker.unanswered = 0),
        () => {},
      )
    }
  }

  #ends(worker: Worker, code: number | null, signal: string | null): void {
    const { connections, metrics, log } = this.#parts
    this.#workers.delete(worker)
    connections.forget(worker.child)
    if (this.#stopping) return
    const { snapshot } = worker
    if (snapshot !== undefined) this.#ended = this.#ended.then((sum) => metrics!.sum([sum, withoutGauges(snapshot)]))
    const isYoung = performance.now() - worker.startedAt < YOUNG_MS
    this.#youngEnds = isYoung ? this.#youngEnds + 1 : 0
    log.error({ worker: worker.child.pid, code, signal }, 'a worker ended; another one replaces it')
    if (this.#youngEnds >= CRASH_LOOP) {
      this.#parts.onBroken(
        new Error(
          `${CRASH_LOOP} workers in a row ended within ${YOUNG_MS / 1000} s of their start; the log above says how.`,
        ),
      )
      return
    }
    this.#startAfter(isYoung ? REPLACE_AFTER_MS : 0)
  }

  async #stopOne({ child, channel }: Worker): Promise<void> {
    const ended = once(child, 'exit')
    try {
      await withinTime(channel.call('stop'), STOP_WITHIN_MS)
      child.disconnect()
    } catch {
      child.kill('SIGKILL')
    }
    await ended
  }
}

/** Drops gauges: they tell of the moment, and counters of all time. */
function withoutGauges(snapshot: Snapshot): Snapshot {
  return snapshot.filter(({ type }) => String(type) !== 'gauge')
}

// Runs in the first process of an instance: starts its workers, replaces those that end or hang, broadcasts to all of them, and stops
// them within the time of http/lifecycle.ts.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import module from 'node:module'
import type { Server } from 'node:net'
import { extname } from 'node:path'
import { isSea } from 'node:sea'
import { fileURLToPath } from 'node:url'
import type { Config } from '../config.ts'
import { VERSION } from '../contract/operations.ts'
import type { Timeouts } from '../http/app.ts'
import type { Metrics, Snapshot } from '../http/metrics.ts'
import { type Lifecycle, WORKER_STOP_WITHIN_MS } from '../http/lifecycle.ts'
import type { Log } from '../log.ts'
import { isInMemory } from '../store/database/database-address.ts'
import { CannotOpenStore, StoreUnavailable } from '../store/store.ts'
import { Overdue, withinTime } from '../timing.ts'
import {
  type Broadcast,
  CALL_LIMIT_MS,
  Channel,
  type FirstProcessMethods,
  HEARTBEAT_MS,
  type OnBroadcast,
  PeerEnded,
  PeerFailed,
  WORKER_ARGUMENT,
  type WorkerMethods,
} from './channel.ts'

/** CRASH_LOOP workers that each replace the one before and end within YOUNG_MS of their start are a crash loop. */
const YOUNG_MS = 5000
const CRASH_LOOP = 5
const REPLACE_AFTER_MS = 100

/** The delay of the next attempt if the system refuses a new process, for example for lack of file descriptors. */
const TRY_AGAIN_AFTER_MS = 1000

/** Longer than a starting worker may wait for the lock of a SQLite file, which is 10 s. */
const START_WITHIN_MS = 30_000

/** A worker that leaves two pings unanswered is replaced, 10 to 15 s after it began to hang. */
const MOST_UNANSWERED = 2

const PROGRAM = isSea()
  ? WORKER_ARGUMENT
  : fileURLToPath(new URL(`../worker${extname(import.meta.url)}`, import.meta.url))

/** As in bin/petstore.js. */
const NO_DEBUGGER = '--disable-sigusr1'

/** The executable starts itself; on Linux the file that this process runs, even if another version has taken its place since. */
const EXECUTABLE = process.platform === 'linux' ? '/proc/self/exe' : process.execPath
const RUNNER = isSea()
  ? { execPath: EXECUTABLE, argv0: process.argv0, execArgv: [] }
  : { execArgv: [NO_DEBUGGER, ...process.execArgv.filter((argument) => argument.startsWith('--max-'))] }

interface WorkersParts {
  config: Config
  log: Log
  lifecycle: Lifecycle
  timeouts: Timeouts | undefined
  /** Its listening socket is shared with the workers: connections that a worker has not accepted when it ends go to another process. */
  server: Server
  metrics: Metrics | undefined
  /** What the first process does when a worker broadcasts. */
  onBroadcast: OnBroadcast
  isStoreOpen: () => boolean
  /** Called if workers are in a crash loop, or if one cannot continue with its store. */
  onBroken: (error: Error) => void
}

interface Worker {
  child: ChildProcess
  channel: Channel<WorkerMethods>
  startedAt: number
  /** How many of those that it replaces ended young, one after another. */
  earlyExits: number
  serves: boolean
  unanswered: number
  /** Its metrics at the last scrape, kept so that the instance's counters do not fall when it ends. */
  snapshot: Snapshot | undefined
}

export class Workers {
  readonly #parts: WorkersParts
  readonly #workers = new Set<Worker>()
  /** The sum of the counters of workers that have ended. */
  #ended: Promise<Snapshot> = Promise.resolve([])
  readonly #heartbeat: NodeJS.Timeout
  #hasGivenUp = false
  /** Whether the program is another version now than this process runs: then no worker can be started. */
  #isReplaced = false

  constructor(parts: WorkersParts) {
    if (isInMemory(parts.config.database))
      throw new CannotOpenStore(
        'A database in memory belongs to one process. Use --workers 1, or a file with --database.',
      )
    this.#parts = parts
    this.#heartbeat = setInterval(() => this.#pingAll(), HEARTBEAT_MS).unref()
  }

  /** Resolves when all workers accept connections, except those that have ended or hung meanwhile: others replace them, as later too. */
  async start(): Promise<void> {
    const starts = Array.from({ length: this.#parts.config.workers - 1 }, () => this.#startOne(0))
    await Promise.all(starts.map((start) => start.catch(unlessEnded)))
  }

  /** Resolves when every worker except the sender has handled the broadcast, failed, or not answered in time. */
  async broadcast(event: Broadcast, sender?: ChildProcess): Promise<void> {
    this.#hasGivenUp ||= event === 'giveUpStore'
    const others = [...this.#workers].filter(({ child }) => child !== sender)
    await Promise.allSettled(others.map(({ channel }) => withinTime(channel.call('onBroadcast', event), CALL_LIMIT_MS)))
  }

  async snapshots(): Promise<Snapshot[]> {
    await Promise.all(
      [...this.#workers].map(async (worker) => {
        worker.snapshot = await withinTime(worker.channel.call('snapshot'), CALL_LIMIT_MS).catch(() => worker.snapshot)
      }),
    )
    // Reads both before the next await, so that a worker that ends meanwhile is counted once.
    const [ended, running] = [this.#ended, [...this.#workers].map(({ snapshot }) => snapshot ?? [])]
    return [await ended, ...running]
  }

  drain(seconds: number): void {
    for (const { channel } of this.#workers) void channel.call('drain', seconds).catch(() => {})
  }

  async stop(): Promise<void> {
    clearInterval(this.#heartbeat)
    await Promise.all([...this.#workers].map((worker) => this.#stopOne(worker)))
  }

  async #startOne(earlyExits: number): Promise<void> {
    const { config, timeouts, lifecycle } = this.#parts
    const child = await this.#fork(earlyExits)
    const channel = new Channel<WorkerMethods>(child, this.#methodsFor(child))
    const startedAt = performance.now()
    const worker = { child, channel, startedAt, earlyExits, serves: false, unanswered: 0, snapshot: undefined }
    this.#workers.add(worker)
    child.once('exit', (code, signal) => this.#onExit(worker, code, signal))
    try {
      const started = channel.call('start', VERSION, config, timeouts)
      if (lifecycle.state === 'draining') void channel.call('drain').catch(() => {})
      const version = await withinTime(started, START_WITHIN_MS)
      if (version !== VERSION) {
        this.#isReplaced = true
        throw new PeerFailed(`the program was replaced by version ${version}: restart the service`)
      }
      worker.serves = true
    } catch (error) {
      child.kill('SIGKILL')
      throw error
    }
  }

  #methodsFor(child: ChildProcess): FirstProcessMethods {
    const { server, onBroadcast, isStoreOpen } = this.#parts
    return {
      broadcast: async (event) => {
        await Promise.allSettled([onBroadcast[event](), this.broadcast(event, child)])
      },
      sendSocket: () =>
        new Promise((resolve, reject) => {
          if (this.#isStopping()) throw new Error('the service is stopping')
          child.send('socket', server, {}, (error) => (error === null ? resolve() : reject(error)))
        }),
      isStoreOpen,
      fail: (message) => {
        void onBroadcast.giveUpStore()
        this.#parts.onBroken(new StoreUnavailable(message))
      },
    }
  }

  /** Starts a process. If the system refuses, rejects, and starts a worker later. */
  async #fork(earlyExits: number): Promise<ChildProcess> {
    const compileCache = module.getCompileCacheDir?.()
    try {
      const child = fork(PROGRAM, {
        ...RUNNER,
        env: { ...process.env, ...(compileCache !== undefined && { NODE_COMPILE_CACHE: compileCache }) },
        serialization: 'advanced',
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      })
      if (child.pid === undefined) await once(child, 'spawn')
      // Ignores that a signal or message failed: the child has ended, and its exit event is handled.
      return child.on('error', () => {})
    } catch (error) {
      this.#startAfter(TRY_AGAIN_AFTER_MS, earlyExits)
      throw error
    }
  }

  #startAfter(ms: number, earlyExits: number): void {
    setTimeout(() => {
      if (this.#isStopping() || this.#hasGivenUp) return
      this.#startOne(earlyExits).catch((error: unknown) => {
        if (!this.#isStopping()) this.#parts.log.error({ error }, 'a worker could not start')
      })
    }, ms)
  }

  #pingAll(): void {
    for (const worker of [...this.#workers].filter(({ serves }) => serves)) {
      if (worker.unanswered >= MOST_UNANSWERED) {
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

  #onExit(worker: Worker, code: number | null, signal: string | null): void {
    const { metrics, log } = this.#parts
    this.#workers.delete(worker)
    if (this.#isStopping()) return
    const { snapshot } = worker
    if (snapshot !== undefined) this.#ended = this.#ended.then((sum) => metrics!.sum([sum, withoutGauges(snapshot)]))
    if (this.#isReplaced) {
      log.error({ worker: worker.child.pid, code, signal }, 'a worker ended; none replaces it before a restart')
      return
    }
    const isYoung = performance.now() - worker.startedAt < YOUNG_MS
    const earlyExits = isYoung ? worker.earlyExits + 1 : 0
    log.error({ worker: worker.child.pid, code, signal }, 'a worker ended; another one replaces it')
    if (earlyExits >= CRASH_LOOP) {
      const message = `${CRASH_LOOP} workers in a row ended within ${YOUNG_MS / 1000} s of their start; the log above says how.`
      this.#parts.onBroken(new Error(message))
      return
    }
    this.#startAfter(isYoung ? REPLACE_AFTER_MS : 0, earlyExits)
  }

  #isStopping(): boolean {
    return this.#parts.lifecycle.state === 'stopping'
  }

  async #stopOne({ child, channel }: Worker): Promise<void> {
    const ended = once(child, 'exit')
    try {
      await withinTime(channel.call('stop'), WORKER_STOP_WITHIN_MS)
      child.disconnect()
    } catch {
      child.kill('SIGKILL')
    }
    await ended
  }
}

function unlessEnded(error: unknown): void {
  if (!(error instanceof PeerEnded || error instanceof Overdue)) throw error
}

/** Drops gauges: unlike counters they describe only processes that run. */
function withoutGauges(snapshot: Snapshot): Snapshot {
  return snapshot.filter(({ type }) => String(type) !== 'gauge')
}

// The primary's side of the workers: starts them, replaces one that ends, and speaks to all of them at once.
import { type ChildProcess, fork, type ForkOptions } from 'node:child_process'
import { once } from 'node:events'
import module from 'node:module'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Front, FrontParts } from '../front.ts'
import type { Metrics, Snapshot } from '../http/metrics.ts'
import type { Log } from '../log.ts'
import { Channel, ChannelClosed, processWire } from '../store/channel.ts'
import { callRemote, createEach } from '../store/remote-writes.ts'
import { IN_MEMORY } from '../store/sqlite/database.ts'
import { CannotOpenStore } from '../store/store.ts'
import { Overdue, withinTime } from '../within-time.ts'
import { type Back, openBack } from './back.ts'
import type { ForPrimary, ForWorker, WorkerStart } from './protocol.ts'

/** A worker that ends sooner after its start than this ended young; so many of them in a row are a crash loop. */
const YOUNG_MS = 5000
const CRASH_LOOP = 5
const REPLACE_AFTER_MS = 100

/** The system may refuse a new process, as when it runs out of file descriptors. */
const TRY_AGAIN_AFTER_MS = 1000

/** A worker that stands still does not hold up the others, nor whoever revokes a key: by then it has forgotten it anyway. */
const TOLD_WITHIN_MS = 3000

/** A worker has as long to stop as the primary has; then it is ended. */
const STOP_WITHIN_MS = 8000

const PROGRAM = fileURLToPath(new URL(`worker${extname(import.meta.url)}`, import.meta.url))

/** Starts workers beside this process; resolves when all accept connections from the socket of its front. */
export async function startWorkers(
  { config, log, store, metrics, elsewhere, lease, timeouts }: FrontParts,
  { server }: Front,
): Promise<Workers> {
  if (config.database.engine === 'sqlite' && config.database.path === IN_MEMORY) {
    throw new CannotOpenStore(
      'A database in memory belongs to one process. Use --workers 1, or a file with --database.',
    )
  }
  const ours: ForPrimary = {
    callStore: (...call) => callRemote(store, ...call),
    createEach: (newPets) => createEach(store, newPets),
    lease: lease!,
  }
  const back = await openBack(elsewhere, log)
  const workers = new Workers({ start: { config, back: back.path, timeouts }, server, back, ours, metrics, log })
  await workers.start(config.workers - 1)
  return workers
}

interface Running {
  child: ChildProcess
  channel: Channel<ForWorker>
  startedAt: number
  /** What it had measured when it was last asked: counters must not fall when it ends. */
  snapshot: Snapshot | undefined
}

interface WorkersParts {
  start: WorkerStart
  /** Its listening socket is shared: what a worker that ends has not accepted, another process accepts. */
  server: Front['server']
  back: Back
  ours: ForPrimary
  metrics: Metrics | undefined
  log: Log
}

export class Workers {
  /** Rejects if workers end again and again. */
  readonly broken: Promise<never>
  readonly #parts: WorkersParts
  readonly #running = new Set<Running>()
  /** What workers that have ended had counted, added up. */
  #ended: Promise<Snapshot> = Promise.resolve([])
  readonly #breaking = Promise.withResolvers<never>()
  #youngEnds = 0
  #draining = false
  #stopping = false

  constructor(parts: WorkersParts) {
    this.#parts = parts
    this.broken = this.#breaking.promise
    // Whoever does not wait for it learns it from the log.
    this.broken.catch(() => {})
  }

  async start(count: number): Promise<void> {
    try {
      await Promise.all(Array.from({ length: count }, () => this.#startOne()))
    } catch (error) {
      await this.stop()
      throw error
    }
  }

  async forgetKeys(): Promise<void> {
    await this.#tell((channel) => channel.call('forgetKeys'))
  }

  async flushUsage(): Promise<void> {
    await this.#tell((channel) => channel.call('flushUsage'))
  }

  async snapshots(): Promise<Snapshot[]> {
    await Promise.all(
      [...this.#running].map(async (running) => {
        running.snapshot = await withinTime(running.channel.call('snapshot'), TOLD_WITHIN_MS).catch(
          () => running.snapshot,
        )
      }),
    )
    // Both at one moment: a worker that ends meanwhile is counted once.
    const [ended, running] = [this.#ended, [...this.#running].map(({ snapshot }) => snapshot ?? [])]
    return [await ended, ...running]
  }

  drain(): void {
    this.#draining = true
    void this.#tell((channel) => channel.call('drain'))
  }

  async stop(): Promise<void> {
    this.#stopping = true
    await Promise.all([...this.#running].map((running) => this.#stopOne(running)))
    await this.#parts.back[Symbol.asyncDispose]()
  }

  async #startOne(): Promise<void> {
    const { start, ours, server } = this.#parts
    const compiled = module.getCompileCacheDir?.()
    const child = await this.#fork({
      execArgv: process.execArgv.filter((argument) => argument.startsWith('--max-')),
      env: { ...process.env, ...(compiled !== undefined && { NODE_COMPILE_CACHE: compiled }) },
      serialization: 'advanced',
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    const channel = new Channel<ForWorker>(processWire(child), ours)
    const running = { child, channel, startedAt: performance.now(), snapshot: undefined }
    this.#running.add(running)
    child.once('exit', (code, signal) => this.#ends(running, code, signal))
    try {
      await channel.call('start', start)
      if (this.#draining) await channel.call('drain')
      if (!this.#stopping) child.send('accept', server, {}, () => {})
    } catch (error) {
      child.kill('SIGKILL')
      throw error
    }
  }

  /** Rejects if the system refuses, and tries again later. */
  async #fork(options: ForkOptions): Promise<ChildProcess> {
    try {
      const child = fork(PROGRAM, options)
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
      this.#startOne().catch((error: unknown) => this.#parts.log.error({ error }, 'a worker could not start'))
    }, ms)
  }

  #ends(running: Running, code: number | null, signal: string | null): void {
    this.#running.delete(running)
    if (this.#stopping) return
    const { snapshot } = running
    if (snapshot !== undefined)
      this.#ended = this.#ended.then((sum) => this.#parts.metrics!.sum([sum, counted(snapshot)]))
    const isYoung = performance.now() - running.startedAt < YOUNG_MS
    this.#youngEnds = isYoung ? this.#youngEnds + 1 : 0
    this.#parts.log.error({ worker: running.child.pid, code, signal }, 'a worker ended; another one replaces it')
    if (this.#youngEnds >= CRASH_LOOP) {
      this.#breaking.reject(
        new Error(
          `${CRASH_LOOP} workers in a row ended within ${YOUNG_MS / 1000} s of their start; the log above says how.`,
        ),
      )
      return
    }
    this.#startAfter(isYoung ? REPLACE_AFTER_MS : 0)
  }

  async #stopOne({ child, channel }: Running): Promise<void> {
    const ended = once(child, 'exit')
    try {
      await withinTime(channel.call('stop'), STOP_WITHIN_MS)
      child.disconnect()
    } catch {
      child.kill('SIGKILL')
    }
    await ended
  }

  /** Rejects with what a worker threw. One that ends meanwhile, or stands still, is not waited for. */
  async #tell(call: (channel: Channel<ForWorker>) => Promise<unknown>): Promise<void> {
    const told = [...this.#running].map(({ channel }) => withinTime(call(channel), TOLD_WITHIN_MS).catch(unlessSilent))
    await Promise.all(told)
  }
}

function unlessSilent(error: unknown): void {
  if (!(error instanceof ChannelClosed || error instanceof Overdue)) throw error
}

/** Without what was only true at the moment. */
function counted(snapshot: Snapshot): Snapshot {
  return snapshot.filter(({ type }) => String(type) !== 'gauge')
}

// The primary's side of the workers: starts them, replaces one that ends, and speaks to all of them as to one front.
import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import module from 'node:module'
import type { AddressInfo } from 'node:net'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Front, FrontParts } from '../front.ts'
import type { Timeouts } from '../http/app.ts'
import type { Snapshot } from '../http/metrics.ts'
import { createRateWindow } from '../http/rate-limit.ts'
import { CannotListen, type InheritedSocket, type ListenAddress } from '../listening.ts'
import type { Log } from '../log.ts'
import { IN_MEMORY } from '../store/sqlite/database.ts'
import { CannotOpenStore } from '../store/store.ts'
import { Overdue, withinTime } from '../within-time.ts'
import { type Back, openBack } from './back.ts'
import { Channel, ChannelClosed } from './channel.ts'
import { Meeting } from './meeting.ts'
import type { ForPrimary, ForWorker, WorkerStart } from './protocol.ts'
import { createEach } from './remote-writes.ts'

/** A worker that ends sooner after its start than this ended young; so many of them in a row are a crash loop. */
const YOUNG_MS = 5000
const CRASH_LOOP = 5
const REPLACE_AFTER_MS = 100

/** A worker that stands still does not hold up the others, nor whoever revokes a key: by then it has forgotten it anyway. */
const TOLD_WITHIN_MS = 3000

/** A worker has as long to stop as a lone process has; then it is ended. */
const STOP_WITHIN_MS = 8000

/** Resolves when all workers listen; throws `CannotListen`. */
export async function startWorkers({ config, log, store, monotonic, elsewhere }: FrontParts, socket: InheritedSocket | undefined, timeouts: Timeouts | undefined): Promise<Front> {
  if (config.database.engine === 'sqlite' && config.database.path === IN_MEMORY) {
    throw new CannotOpenStore('A database in memory belongs to one process. Use --workers 1, or a file with --database.')
  }
  const lease = createRateWindow(config.rateLimit ?? { requests: 0, seconds: 1 }, monotonic)
  const meeting = new Meeting()
  const ours = (worker: object): ForPrimary => ({
    callStore(part, method, parameters) {
      return (store[part] as unknown as Record<string, (...parameters: unknown[]) => Promise<unknown>>)[method]!(...parameters)
    },
    async createEach(newPets) {
      await meeting.join(worker)
      return createEach(store, newPets)
    },
    lease,
  })
  const back = await openBack(elsewhere, log)
  const workers = new Workers({ start: { config, back: back.path, socket, timeouts }, back, ours, log })
  await workers.listen()
  return workers
}

interface Running {
  worker: Worker
  channel: Channel<ForWorker>
  startedAt: number
  /** What it had measured when it was last asked: counters must not fall when it ends. */
  snapshot: Snapshot | undefined
}

interface WorkersParts {
  start: WorkerStart
  back: Back
  ours: (worker: object) => ForPrimary
  log: Log
}

class Workers implements Front {
  readonly broken: Promise<never>
  readonly #parts: WorkersParts
  readonly #running = new Set<Running>()
  readonly #ended: Snapshot[] = []
  readonly #breaking = Promise.withResolvers<never>()
  #address: AddressInfo | undefined
  #youngEnds = 0
  #draining = false
  #stopping = false

  constructor(parts: WorkersParts) {
    this.#parts = parts
    this.broken = this.#breaking.promise
    // Whoever does not wait for it learns it from the log.
    this.broken.catch(() => {})
  }

  get address(): AddressInfo {
    return this.#address!
  }

  /** Resolves when all listen; throws `CannotListen`. */
  async listen(): Promise<void> {
    // Each worker accepts from the one socket: what a worker that ends has not accepted, another one accepts.
    cluster.schedulingPolicy = cluster.SCHED_NONE
    cluster.setupPrimary({
      exec: fileURLToPath(new URL(`worker${extname(import.meta.url)}`, import.meta.url)),
      args: [],
      execArgv: process.execArgv.filter((argument) => argument.startsWith('--max-')),
      serialization: 'advanced',
    })
    const { config, socket } = this.#parts.start
    const where: ListenAddress | InheritedSocket = socket ?? { host: config.host, port: config.port, setting: '' }
    try {
      // With port 0 the first one chooses.
      this.#address = await this.#start()
      await Promise.all(Array.from({ length: config.workers - 1 }, () => this.#start()))
    } catch (error) {
      await this.finish()
      throw error instanceof Error && error.name === 'CannotListen' ? new CannotListen(where, error.cause) : error
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
        running.snapshot = await withinTime(running.channel.call('snapshot'), TOLD_WITHIN_MS).catch(() => running.snapshot)
      }),
    )
    return [...this.#ended, ...[...this.#running].flatMap(({ snapshot }) => (snapshot === undefined ? [] : [snapshot]))]
  }

  drain(): void {
    this.#draining = true
    void this.#tell((channel) => channel.call('drain'))
  }

  async finish(): Promise<void> {
    this.#stopping = true
    await Promise.all([...this.#running].map((running) => this.#stop(running)))
    await this.#parts.back[Symbol.asyncDispose]()
  }

  async #start(): Promise<AddressInfo> {
    const { start, ours } = this.#parts
    const compiled = module.getCompileCacheDir?.()
    const worker = cluster.fork(compiled === undefined ? {} : { NODE_COMPILE_CACHE: compiled })
    const channel = new Channel<ForWorker>(worker.process, ours(worker))
    const running = { worker, channel, startedAt: performance.now(), snapshot: undefined }
    this.#running.add(running)
    worker.once('exit', (code, signal) => this.#ends(running, code, signal))
    try {
      const address = await channel.call('start', start)
      if (this.#draining) await channel.call('drain')
      return address
    } catch (error) {
      worker.process.kill('SIGKILL')
      throw error
    }
  }

  #ends(running: Running, code: number | null, signal: string | null): void {
    this.#running.delete(running)
    if (this.#stopping || this.#address === undefined) return
    if (running.snapshot !== undefined) this.#ended.push(running.snapshot.filter(({ type }) => String(type) !== 'gauge'))
    const isYoung = performance.now() - running.startedAt < YOUNG_MS
    this.#youngEnds = isYoung ? this.#youngEnds + 1 : 0
    this.#parts.log.error({ worker: running.worker.process.pid, code, signal }, 'a worker ended; another one replaces it')
    if (this.#youngEnds >= CRASH_LOOP) {
      this.#breaking.reject(new Error(`${CRASH_LOOP} workers in a row ended within ${YOUNG_MS / 1000} s of their start; the log above says how.`))
      return
    }
    setTimeout(() => {
      if (this.#stopping) return
      this.#start().catch((error: unknown) => this.#parts.log.error({ error }, 'a worker could not start'))
    }, isYoung ? REPLACE_AFTER_MS : 0)
  }

  async #stop({ worker, channel }: Running): Promise<void> {
    const ended = once(worker.process, 'exit')
    try {
      await withinTime(channel.call('stop'), STOP_WITHIN_MS)
      worker.process.disconnect()
    } catch {
      worker.process.kill('SIGKILL')
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

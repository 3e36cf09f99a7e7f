// The connections of a process: a bounded number, a time limit for each call, and a bounded queue. The driver has a pool of
// its own, but without these bounds: while the database is unavailable or hangs, its calls wait forever.
import { StoreUnavailable } from '../store.ts'
import { Connection, type Database } from './connection.ts'
import type { ConnectionSettings, Host } from './connection-settings.ts'
import { asStoreFailure, breaksConnection, ConnectionLost, explain, wasRolledBack } from './failures.ts'

type Work<T> = (sql: Database) => Promise<T>

/** How long after the server's statement timeout a call without an answer means that the server hangs. */
const GRACE_MS = 500

/** How long calls are refused at once after a failed attempt to connect, to spare a database that is unavailable. */
const PAUSE_MS = 250

/** How many calls may wait for each connection. */
const WAITING_PER_CONNECTION = 50

/** A connection is replaced after this time, so that changes of DNS take effect. */
const LIFETIME_MS = 30 * 60_000

type Waiting = PromiseWithResolvers<Connection | undefined>

export class Pool {
  readonly #settings: ConnectionSettings
  readonly #idle: Connection[] = []
  readonly #all = new Set<Connection>()
  readonly #waiting: Waiting[] = []
  #opening = 0
  /** The host that last accepted a connection is tried first. */
  #firstHost = 0
  #lastFailure: { error: StoreUnavailable; at: number } | undefined
  #ended = false

  constructor(settings: ConnectionSettings) {
    this.#settings = settings
  }

  /** Runs a read, and once more if its connection broke, since that may have been stale. */
  read<T>(work: Work<T>): Promise<T> {
    return this.#attempt(work, breaksConnection)
  }

  /** Runs a write. It is not repeated, since it may have taken effect, unless the server rolled it back. */
  write<T>(work: Work<T>): Promise<T> {
    return this.#attempt(work, wasRolledBack)
  }

  /** Runs an idempotent write, which is repeated like a read. */
  writeRepeatable<T>(work: Work<T>): Promise<T> {
    return this.#attempt(work, (error) => breaksConnection(error) || wasRolledBack(error))
  }

  /** Runs a call without retries, and with a time limit of its own. */
  async run<T>(work: Work<T>, limitMs = this.#settings.statementTimeoutMs + GRACE_MS): Promise<T> {
    const connection = await this.#acquire()
    let timer: NodeJS.Timeout | undefined
    try {
      const late = new Promise<never>((_resolve, reject) => {
        timer = setTimeout(() => reject(new ConnectionLost(`no answer within ${limitMs} ms`)), limitMs)
      })
      return await Promise.race([work(connection.sql), late])
    } catch (error) {
      if (breaksConnection(error)) this.#discard(connection)
      throw error
    } finally {
      clearTimeout(timer)
      this.#release(connection)
    }
  }

  async end(): Promise<void> {
    this.#ended = true
    this.#refuseWaiting(new StoreUnavailable('The store is closed.'))
    await Promise.all(Array.from(this.#all, (connection) => connection.end()))
  }

  /** Runs a call, and once more if `mayRepeat` allows it; never after a call that used up its time. */
  async #attempt<T>(work: Work<T>, mayRepeat: (error: unknown) => boolean): Promise<T> {
    try {
      return await this.run(work).catch((error: unknown) => {
        const over = error instanceof StoreUnavailable || error instanceof ConnectionLost
        if (over || !mayRepeat(error)) throw error
        return this.run(work)
      })
    } catch (error) {
      throw asStoreFailure(error)
    }
  }

  async #acquire(): Promise<Connection> {
    for (;;) {
      if (this.#ended) throw new StoreUnavailable('The store is closed.')
      const idle = this.#idle.pop()
      if (idle !== undefined) return idle
      const { poolSize } = this.#settings
      const connection = this.#all.size + this.#opening < poolSize ? await this.#open() : await this.#wait(poolSize)
      if (connection !== undefined) return connection
    }
  }

  /** Resolves with a connection that became free, or with undefined if a new one can be opened. */
  #wait(poolSize: number): Promise<Connection | undefined> {
    if (this.#waiting.length >= poolSize * WAITING_PER_CONNECTION) throw this.#busy(poolSize)
    const waiting: Waiting = Promise.withResolvers()
    this.#waiting.push(waiting)
    const timer = setTimeout(() => {
      this.#waiting.splice(this.#waiting.indexOf(waiting), 1)
      waiting.reject(this.#busy(poolSize))
    }, this.#settings.connectTimeoutMs)
    return waiting.promise.finally(() => clearTimeout(timer))
  }

  #busy(poolSize: number): StoreUnavailable {
    return new StoreUnavailable(`All ${poolSize} connections to PostgreSQL are busy; ${this.#waiting.length} calls wait.`)
  }

  async #open(): Promise<Connection> {
    const { hosts } = this.#settings
    if (this.#lastFailure !== undefined && performance.now() - this.#lastFailure.at < PAUSE_MS) throw this.#lastFailure.error
    this.#opening += 1
    try {
      const problems: string[] = []
      for (let tried = 0; tried < hosts.length; tried += 1) {
        const index = (this.#firstHost + tried) % hosts.length
        try {
          const connection = await Connection.open(this.#settings, hosts[index]!, (closed) => this.#forget(closed))
          if (!connection.closed) this.#all.add(connection)
          this.#firstHost = index
          this.#lastFailure = undefined
          return connection
        } catch (error) {
          problems.push(`${placeOf(hosts[index]!)}: ${explain(error)}`)
        }
      }
      throw this.#failed(new StoreUnavailable(`Cannot connect to PostgreSQL at ${problems.join('; ')}`))
    } finally {
      this.#opening -= 1
    }
  }

  #failed(error: StoreUnavailable): StoreUnavailable {
    this.#lastFailure = { error, at: performance.now() }
    this.#refuseWaiting(error)
    return error
  }

  #refuseWaiting(error: StoreUnavailable): void {
    for (const waiting of this.#waiting.splice(0)) waiting.reject(error)
  }

  /** Discards the idle connections too: after a restart or a failover they are all dead. */
  #discard(connection: Connection): void {
    for (const suspect of [connection, ...this.#idle.splice(0)]) {
      suspect.destroy()
      this.#all.delete(suspect)
    }
  }

  #release(connection: Connection): void {
    const old = performance.now() - connection.openedAt > LIFETIME_MS
    if (connection.closed || old || this.#ended) {
      if (!connection.closed) void connection.end()
      this.#all.delete(connection)
      this.#waiting.shift()?.resolve(undefined)
      return
    }
    const next = this.#waiting.shift()
    if (next === undefined) this.#idle.push(connection)
    else next.resolve(connection)
  }

  #forget(connection: Connection): void {
    this.#all.delete(connection)
    const index = this.#idle.indexOf(connection)
    if (index >= 0) this.#idle.splice(index, 1)
  }
}

function placeOf({ host, port }: Host): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

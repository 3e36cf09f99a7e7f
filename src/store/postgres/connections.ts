// Keeps the connections of a pool: which are in use, which calls wait, and when to open another. pool.ts describes the rules.
//
//     open         acquire           park: a write is overdue
//   --------> idle ---------> in use --------------------------> parked
//             ^ | ^              |                                 |
//     release | | +-- release ---+------ release: it is answered --+
//             | v
//            probed (probeIdle: does the server still answer?)
//
// From every state a connection leaves the pool when it breaks or is closed; a released one also if `#mustClose`.
import { type ConnectionStats, type Report, StoreBusy, StoreUnavailable } from '../store.ts'
import { type Kind, Uses, WaitingCalls } from './calls.ts'
import type { Connection } from './connection.ts'
import type { ConnectionSettings } from './connection-settings.ts'
import { breaksConnection } from './failures.ts'
import { Hosts } from './hosts.ts'

/** How long calls are refused at once after every host has refused a connection, to spare an unavailable database. */
const PAUSE_MS = 250

/** How many calls may wait for each connection. */
const WAITING_PER_CONNECTION = 50

/** The pause before another connection is tried after a refusal; it doubles with each further refusal. */
const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 30_000

/** The share of the connections that writes leave to reads, because a lock on a table may hold up all writes for seconds. */
const READ_SHARE = 0.25

/** A connection is replaced after this time, so that changes of DNS take effect. */
const LIFETIME_MS = 30 * 60_000

export class Connections {
  readonly #settings: ConnectionSettings
  readonly #hosts: Hosts
  readonly #waiting = new WaitingCalls()
  /** Every open connection. One that is neither idle, in use nor parked is being probed or closed. */
  readonly #all = new Set<Connection>()
  readonly #idle: Connection[] = []
  readonly #inUse = new Uses()
  readonly #parked = new Set<Connection>()
  #opening = 0
  /** How many connections the database accepts, as far as is known; at most `poolSize`. */
  #accepted: number
  #pauseMs = FIRST_PAUSE_MS
  #mayTryMoreAt = 0
  /** The reason of an outage, until a connection works again. */
  #lastFailure: { error: StoreUnavailable; at: number } | undefined
  #ended = false

  constructor(settings: ConnectionSettings, report: Report) {
    this.#settings = settings
    this.#hosts = new Hosts(settings, report)
    this.#accepted = settings.poolSize
  }

  get parked(): ReadonlySet<Connection> {
    return this.#parked
  }

  get stats(): ConnectionStats {
    const { last } = this.#hosts
    return {
      inUse: this.#inUse.count,
      idle: this.#idle.length,
      parked: this.#parked.size,
      waiting: this.#waiting.count('read') + this.#waiting.count('write'),
      host: last?.place,
      role: last?.server.role,
    }
  }

  /** Whether every connection that writes may use is parked, so that a write is refused at once. */
  get hasOnlyParkedWrites(): boolean {
    return this.#parked.size >= this.#writePlaces
  }

  /** Whether this is the server that connections are opened to now. */
  isCurrent({ place, server }: Connection): boolean {
    const { last } = this.#hosts
    return last !== undefined && last.place === place && last.server.startedAt === server.startedAt
  }

  /** Returns a connection or a promise of one; throws or rejects with `StoreUnavailable`. `release`, `discard` or `park` must follow. */
  acquire(kind: Kind, isShared: boolean): Connection | Promise<Connection> {
    if (this.#ended) throw closed()
    const idle = kind === 'read' || this.#writeRoom > 0 ? this.#idle.pop() : undefined
    if (idle !== undefined) return this.#inUse.begin(idle, kind, isShared)
    this.#refuseEarly(kind)
    const { connectTimeoutMs, hosts } = this.#settings
    // As long as connecting to every host may take, and a little longer: then a call gets the reason why connecting failed.
    const waitLimitMs = connectTimeoutMs * hosts.length + PAUSE_MS
    const waiting = this.#waiting.add(kind, isShared, waitLimitMs, () => this.#busy(kind))
    this.#serveWaiting()
    return waiting
  }

  /**
   * Returns a connection with short reads in progress, for one more short read; `release` must follow. Returns undefined
   * unless all connections are in use and no call waits: a connection that is joined again and again would never be free.
   */
  join(): Connection | undefined {
    if (this.#idle.length > 0 || this.#wanted() > 0 || this.#mayOpen()) return undefined
    return this.#inUse.join()
  }

  release(connection: Connection): void {
    if (!this.#inUse.end(connection)) return
    if (!connection.closed) {
      this.#endOutage()
      if (this.#mustClose(connection)) void connection.end()
      else this.#idle.push(connection)
    }
    this.#serveWaiting()
  }

  /** Closes a connection that broke, and the idle ones too: after a restart or a failover they are all dead. */
  discard(connection: Connection): void {
    for (const suspect of [connection, ...this.#idle.splice(0)]) suspect.destroy()
  }

  /** Keeps the connection of an overdue call open, and counted, until `answered` settles or the connection ends. */
  park(connection: Connection, answered: Promise<unknown>): void {
    this.#inUse.forget(connection)
    this.#parked.add(connection)
    const unpark = () => {
      if (this.#parked.delete(connection)) this.release(connection)
    }
    answered.then(unpark, (error: unknown) => (breaksConnection(error) ? connection.destroy() : unpark()))
  }

  /** Probes the idle connections before further use: after a call without an answer they may be silently dead too. */
  probeIdle(): void {
    const limitMs = this.#settings.connectTimeoutMs / 2
    for (const suspect of this.#idle.splice(0)) {
      suspect.probe(limitMs).then(
        () => this.release(suspect),
        () => {},
      )
    }
  }

  async end(): Promise<void> {
    this.#ended = true
    this.#waiting.refuseAll(closed())
    await Promise.all(Array.from(this.#all, (connection) => connection.end()))
  }

  #mustClose({ openedAt, server }: Connection): boolean {
    const isOld = performance.now() - openedAt > LIFETIME_MS
    const isSpare = this.#all.size > Math.max(this.#settings.poolSize, this.#parked.size + 1)
    return this.#ended || isOld || isSpare || this.#hosts.isOutdated(server)
  }

  /** Forgets the refusals of an outage: they do not mean that the database accepts only few connections. */
  #endOutage(): void {
    if (this.#lastFailure === undefined) return
    this.#lastFailure = undefined
    this.#resetAccepted()
  }

  /** How many connections writes may use, parked ones included. Reads and writes share a single connection. */
  get #writePlaces(): number {
    return Math.max(1, this.#accepted - Math.max(1, Math.floor(this.#accepted * READ_SHARE)))
  }

  #resetAccepted(): void {
    this.#accepted = this.#settings.poolSize
    this.#pauseMs = FIRST_PAUSE_MS
  }

  get #writeRoom(): number {
    return this.#writePlaces - this.#parked.size - this.#inUse.writes
  }

  /** Whether a connection is open that is not parked, or one is being opened, so that a call may succeed. */
  #mayAnswer(): boolean {
    return this.#all.size > this.#parked.size || this.#opening > 0
  }

  #refuseEarly(kind: Kind): void {
    const failure = this.#lastFailure
    if (failure !== undefined && !this.#mayAnswer() && performance.now() - failure.at < PAUSE_MS) throw failure.error
    if (kind === 'write' && this.hasOnlyParkedWrites) {
      throw new StoreBusy(
        `${this.#parked.size} writes have no answer from PostgreSQL yet, and there is no connection for more; it may be waiting for a synchronous standby.`,
      )
    }
    const places = kind === 'read' ? this.#accepted : this.#writePlaces
    if (this.#waiting.count(kind) >= places * WAITING_PER_CONNECTION) throw this.#busy(kind)
  }

  #busy(kind: Kind): StoreBusy {
    const { inUse, parked } = this.stats
    return new StoreBusy(
      `All connections to PostgreSQL are busy: ${inUse} in use, ${parked} without an answer; ${this.#waiting.count(kind)} ${kind}s wait.`,
    )
  }

  /** Hands idle connections to the calls that have waited longest, and opens more for the rest. */
  #serveWaiting(): void {
    while (this.#idle.length > 0) {
      const call = this.#waiting.next(this.#writeRoom > 0)
      if (call === undefined) return
      call.resolve(this.#inUse.begin(this.#idle.pop()!, call.kind, call.isShared))
    }
    const wanted = this.#wanted()
    while (this.#opening < wanted && this.#mayOpen()) void this.#open()
  }

  /** How many of the waiting calls could run if they had a connection. */
  #wanted(): number {
    if (this.#waiting.isEmpty) return 0
    return this.#waiting.count('read') + Math.min(this.#waiting.count('write'), Math.max(0, this.#writeRoom))
  }

  /** Allows one connection beside the parked ones in any case, so that a pool of one can still read. */
  #mayOpen(): boolean {
    if (this.#ended) return false
    const open = this.#all.size + this.#opening
    const mayTryMore = open < this.#settings.poolSize && performance.now() >= this.#mayTryMoreAt
    return open < this.#accepted || mayTryMore || open <= this.#parked.size
  }

  async #open(): Promise<void> {
    this.#opening += 1
    try {
      const connection = await this.#hosts.open((gone) => this.#forget(gone))
      this.#opening -= 1
      this.#adopt(connection)
    } catch (error) {
      this.#opening -= 1
      this.#handleFailedOpen(error as StoreUnavailable)
    }
  }

  #adopt(connection: Connection): void {
    this.#resetAccepted()
    if (!connection.closed) this.#all.add(connection)
    for (const other of this.#idle.filter(({ server }) => this.#hosts.isOutdated(server))) other.destroy()
    this.release(connection)
  }

  /** Refuses the waiting calls only if no connection works; otherwise they get one that is released. */
  #handleFailedOpen(error: StoreUnavailable): void {
    this.#accepted = Math.max(1, this.#all.size + this.#opening)
    this.#mayTryMoreAt = performance.now() + this.#pauseMs
    this.#pauseMs = Math.min(2 * this.#pauseMs, LONGEST_PAUSE_MS)
    if (this.#mayAnswer()) return
    this.#lastFailure = { error, at: performance.now() }
    this.#hosts.reportLost(error.message)
    this.#waiting.refuseAll(error)
  }

  #forget(connection: Connection): void {
    this.#all.delete(connection)
    this.#inUse.forget(connection)
    this.#parked.delete(connection)
    const index = this.#idle.indexOf(connection)
    if (index >= 0) this.#idle.splice(index, 1)
    this.#serveWaiting()
  }
}

function closed(): StoreUnavailable {
  return new StoreUnavailable('The store is closed.')
}

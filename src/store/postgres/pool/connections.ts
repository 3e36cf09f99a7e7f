// Keeps the connections of a pool: which call gets one, which calls wait, and when to open another. pool.ts describes the rules.
//
//            adopt        acquire          park: its write is overdue
//   opening -------> idle --------> in use ------------------------> parked
//                      ^             | ^ | join, release:              |
//                      |             | +-+ short reads share it        |
//                      +---- free ---+- release of its last call       |
//                                    +- its write is answered: free ---+
//
//   any --> closing   free: it is old or spare; discard: it broke, or is idle beside one that broke or gave no answer; adopt: a new
//                     primary has replaced its server
//   any --> gone      it has ended, whatever closed it
import { type ConnectionStats, type Report, StoreBusy, StoreUnavailable } from '../../store.ts'
import type { Connection, Kind } from './connection.ts'
import type { ConnectionSettings } from './connection-settings.ts'
import { ConnectionStates } from './connection-states.ts'
import { breaksConnection } from './failures.ts'
import { Hosts } from './hosts.ts'
import { WaitingCalls } from './waiting-calls.ts'

/** How long calls are refused at once after every host has refused a connection, to spare an unavailable database. */
const PAUSE_MS = 250

/** How many reads, and how many writes, may wait for each connection of the pool, however many of them are open. */
const WAITING_PER_CONNECTION = 50

/** The pause after a refusal before another connection is tried beyond the accepted ones. */
const SHORTAGE_PAUSE_MS = 1000

/** The share of the connections that writes leave to reads, because a lock on a table may hold up all writes for seconds. */
const READ_SHARE = 0.25

/** A connection is replaced after this time, so that changes of DNS take effect. */
const LIFETIME_MS = 30 * 60_000

/** A connection that no call has used for this time is more than the load needs, and other instances may need it. */
const UNUSED_MS = 60_000

/** How many connections are kept whatever the load. */
const KEPT = 2

/** The database has refused a connection, and none was opened since. */
interface Shortage {
  /** How many connections the database accepts, as far as is known: at least 1. */
  accepted: number
  refusedAt: number
  /** The reason why no connection worked at all, until one does. */
  outage: StoreUnavailable | undefined
}

export class Connections {
  readonly #settings: ConnectionSettings
  readonly #hosts: Hosts
  readonly #waiting = new WaitingCalls()
  readonly #states = new ConnectionStates()
  /** How many connections are being opened. */
  #opening = 0
  #shortage: Shortage | undefined
  #ended = false
  readonly #giveBack = setInterval(() => this.#closeUnused(), UNUSED_MS / 4).unref()

  constructor(settings: ConnectionSettings, report: Report) {
    this.#settings = settings
    this.#hosts = new Hosts(settings, report)
  }

  get parked(): readonly Connection[] {
    return this.#states.all('parked')
  }

  get stats(): ConnectionStats {
    return {
      inUse: this.#states.count('in use'),
      idle: this.#states.count('idle'),
      parked: this.#states.count('parked'),
      waiting: this.#waiting.count('read') + this.#waiting.count('write'),
      servers: this.#states.all().map(({ host, server: { role, startedAt, timeline } }) => ({
        host,
        role,
        startedAt,
        timeline: timeline?.number,
      })),
    }
  }

  /** Whether every connection that writes may use is parked, so that a write is refused at once. */
  get hasOnlyParkedWrites(): boolean {
    return this.#states.count('parked') >= this.#mostForWrites
  }

  /** Returns a connection or a promise of one; throws or rejects with `StoreUnavailable`. `release`, `discard` or `park` must follow. */
  acquire(kind: Kind, isShared: boolean): Connection | Promise<Connection> {
    if (this.#ended) throw closed()
    const idle = kind === 'read' || this.#writeRoom > 0 ? this.#states.idle : undefined
    if (idle !== undefined) return this.#states.begin(idle, kind, isShared)
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
   * while a call waits: a connection that is joined again and again would never be free. Reads share connections even if
   * others are free: a packet costs both sides more than a short read.
   */
  join(): Connection | undefined {
    return this.#wanted() > 0 ? undefined : this.#states.join()
  }

  release(connection: Connection): void {
    if (this.#states.end(connection)) this.#free(connection)
  }

  /** Closes a connection that broke or gave no answer, and the idle ones: after a restart or a failover they are all dead. */
  discard(connection: Connection): void {
    this.#destroyAll([connection, ...this.#states.all('idle')])
  }

  /** Keeps the connection of an overdue write open, and counted, until it is answered or the connection ends; closes the idle ones. */
  park(connection: Connection, answered: Promise<unknown>): void {
    this.#states.move(connection, 'parked')
    this.#destroyAll(this.#states.all('idle'))
    answered.then(
      () => this.#free(connection),
      (error: unknown) => (breaksConnection(error) ? connection.destroy() : this.#free(connection)),
    )
  }

  async end(): Promise<void> {
    this.#ended = true
    clearInterval(this.#giveBack)
    this.#waiting.refuseAll(closed())
    await Promise.all(this.#states.all().map((connection) => connection.end()))
  }

  /** Makes a connection without calls idle, or closes it if it is no longer wanted, and serves the calls that wait. */
  #free(connection: Connection): void {
    if (!connection.closed) {
      // The refusals of an outage do not mean that the database accepts only few connections.
      if (this.#shortage?.outage !== undefined) this.#shortage = undefined
      this.#states.move(connection, 'idle')
      if (this.#mustClose(connection)) this.#close(connection)
    }
    this.#serveWaiting()
  }

  #close(connection: Connection): void {
    this.#states.move(connection, 'closing')
    void connection.end()
  }

  #closeUnused(): void {
    const spare = Math.max(0, this.#states.count() - KEPT)
    for (const connection of this.#states.unused(UNUSED_MS).slice(0, spare)) this.#close(connection)
  }

  /** A standby may have been promoted meanwhile, which the metrics would not show. */
  #mustClose({ openedAt, server }: Connection): boolean {
    const open = this.#states.count()
    const isOld = performance.now() - openedAt > (server.role === 'standby' ? UNUSED_MS : LIFETIME_MS)
    const isSpare = open > this.#settings.poolSize && open > this.#states.count('parked') + 1
    return this.#ended || isOld || isSpare
  }

  #destroyAll(connections: readonly Connection[]): void {
    // All of them first: when one ends, the calls that wait get the idle ones.
    for (const connection of connections) this.#states.move(connection, 'closing')
    for (const connection of connections) connection.destroy()
  }

  /** How many connections there may be: fewer than the pool's size after a refusal. */
  get #accepted(): number {
    return this.#shortage?.accepted ?? this.#settings.poolSize
  }

  /** How many connections writes may use, parked ones included. Reads and writes share a single connection. */
  get #mostForWrites(): number {
    return Math.max(1, this.#accepted - Math.max(1, Math.floor(this.#accepted * READ_SHARE)))
  }

  /** How many more connections writes may use; none if negative. */
  get #writeRoom(): number {
    return this.#mostForWrites - this.#states.writes
  }

  /** How many of the waiting calls could run if they had a connection. */
  #wanted(): number {
    return this.#waiting.count('read') + Math.min(this.#waiting.count('write'), Math.max(0, this.#writeRoom))
  }

  /** Allows one connection beside the parked ones in any case, so that a pool of one can still read. */
  #mayOpen(): boolean {
    const open = this.#states.count() + this.#opening
    if (open <= this.#states.count('parked')) return true
    const mayTryMore = performance.now() >= (this.#shortage?.refusedAt ?? 0) + SHORTAGE_PAUSE_MS
    return open < (mayTryMore ? this.#settings.poolSize : this.#accepted)
  }

  /** Whether a connection is open that is not parked, or one is being opened, so that a call may succeed. */
  #mayAnswer(): boolean {
    return this.#opening > 0 || this.#states.count() > this.#states.count('parked')
  }

  /** Throws if a call must not even wait: in the pause after an outage, or if too many wait, or for a write that no connection can get. */
  #refuseEarly(kind: Kind): void {
    const shortage = this.#shortage
    const isRecent = shortage !== undefined && performance.now() - shortage.refusedAt < PAUSE_MS
    if (isRecent && shortage.outage !== undefined && !this.#mayAnswer()) throw shortage.outage
    const isFull = this.#waiting.count(kind) >= this.#settings.poolSize * WAITING_PER_CONNECTION
    if (isFull || (kind === 'write' && this.hasOnlyParkedWrites)) throw this.#busy(kind)
  }

  #busy(kind: Kind): StoreBusy {
    const { inUse, parked } = this.stats
    return new StoreBusy(
      `All connections to PostgreSQL are busy: ${inUse} in use, ${parked} without an answer; ${this.#waiting.count(kind)} ${kind}s wait.`,
    )
  }

  /** Hands idle connections to the calls that have waited longest, and opens more for the rest. */
  #serveWaiting(): void {
    for (const idle of this.#states.all('idle')) {
      const call = this.#waiting.next(this.#writeRoom > 0)
      if (call === undefined) return
      call.resolve(this.#states.begin(idle, call.kind, call.isShared))
    }
    const wanted = this.#wanted()
    while (this.#opening < wanted && this.#mayOpen()) void this.#open()
  }

  async #open(): Promise<void> {
    this.#opening += 1
    try {
      const connection = await this.#hosts.open((gone) => {
        this.#states.remove(gone)
        this.#serveWaiting()
      })
      this.#opening -= 1
      this.#adopt(connection)
    } catch (error) {
      this.#opening -= 1
      this.#handleFailedOpen(error as StoreUnavailable)
    }
  }

  #adopt(connection: Connection): void {
    this.#shortage = undefined
    if (!connection.closed) this.#states.add(connection)
    // Also those in use: what a replaced primary still acknowledges is lost.
    this.#destroyAll(this.#states.all().filter(({ server }) => this.#hosts.isOutdated(server)))
    this.#free(connection)
  }

  /** Refuses the waiting calls only if no connection works; otherwise they get one that is released. */
  #handleFailedOpen(error: StoreUnavailable): void {
    const isOutage = !this.#mayAnswer()
    this.#shortage = {
      accepted: Math.max(1, this.#states.count() + this.#opening),
      refusedAt: performance.now(),
      outage: isOutage ? error : this.#shortage?.outage,
    }
    if (!isOutage) return
    this.#hosts.reportLost(error.message)
    this.#waiting.refuseAll(error)
  }
}

function closed(): StoreUnavailable {
  return new StoreUnavailable('The store is closed.')
}

// Keeps the connections of a pool: which call gets one, which calls wait, and when to open another. pool.ts describes the rules.
//
//            adopt        acquire          park: its write is overdue
//   opening -------> idle --------> in use ------------------------> parked
//                    ^ | ^           | ^ | join, release:              |
//       free:        | | |           | +-+ short reads share it        |
//       it answered  | | +-- free ---+- release of its last call       |
//                    | |             +- its write is answered: free ---+
//                    | v probeIdle: another call got no answer
//                   probed
//
//   any --> closing   free: it is old, spare or outdated; discard: it broke, or is idle beside one that broke
//   any --> gone      it has ended, whatever closed it
import { type ConnectionStats, type Report, StoreBusy, StoreUnavailable } from '../store.ts'
import type { Connection } from './connection.ts'
import type { ConnectionSettings } from './connection-settings.ts'
import { ConnectionStates } from './connection-states.ts'
import { breaksConnection } from './failures.ts'
import { Hosts } from './hosts.ts'
import { type Kind, WaitingCalls } from './waiting-calls.ts'

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

/** The database has refused a connection, and none was opened since. */
interface Shortage {
  /** How many connections the database accepts, as far as is known: at least 1. */
  accepted: number
  refusedAt: number
  /** How long after `refusedAt` another connection may be tried beyond the accepted ones. */
  pauseMs: number
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

  constructor(settings: ConnectionSettings, report: Report) {
    this.#settings = settings
    this.#hosts = new Hosts(settings, report)
  }

  get parked(): readonly Connection[] {
    return this.#states.all('parked')
  }

  get stats(): ConnectionStats {
    const { last } = this.#hosts
    return {
      inUse: this.#states.count('in use'),
      idle: this.#states.count('idle'),
      parked: this.#states.count('parked'),
      waiting: this.#waiting.count('read') + this.#waiting.count('write'),
      host: last?.host,
      role: last?.server.role,
    }
  }

  /** Whether every connection that writes may use is parked, so that a write is refused at once. */
  get hasOnlyParkedWrites(): boolean {
    return this.#states.count('parked') >= this.#mostForWrites
  }

  /** Whether this is the server that connections are opened to now. */
  isCurrent({ host, server }: Connection): boolean {
    const { last } = this.#hosts
    return last !== undefined && last.host === host && last.server.startedAt === server.startedAt
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
   * unless all connections are in use and no call waits: a connection that is joined again and again would never be free.
   */
  join(): Connection | undefined {
    if (this.#states.idle !== undefined || this.#wanted() > 0 || this.#mayOpen()) return undefined
    return this.#states.join()
  }

  release(connection: Connection): void {
    if (this.#states.end(connection)) this.#free(connection)
  }

  /** Closes a connection that broke, and the idle ones too: after a restart or a failover they are all dead. */
  discard(connection: Connection): void {
    this.#destroyAll([connection, ...this.#states.all('idle')])
  }

  /** Keeps the connection of an overdue call open, and counted, until it is answered or the connection ends. */
  park(connection: Connection, answered: Promise<unknown>): void {
    this.#states.move(connection, 'parked')
    answered.then(
      () => this.#free(connection),
      (error: unknown) => (breaksConnection(error) ? connection.destroy() : this.#free(connection)),
    )
  }

  /** Probes the idle connections before further use: after a call without an answer they may be silently dead too. */
  probeIdle(): void {
    const limitMs = this.#settings.connectTimeoutMs / 2
    for (const suspect of this.#states.all('idle')) {
      this.#states.move(suspect, 'probed')
      suspect.probe(limitMs).then(
        () => this.#free(suspect),
        () => {},
      )
    }
  }

  async end(): Promise<void> {
    this.#ended = true
    this.#waiting.refuseAll(closed())
    await Promise.all(this.#states.all().map((connection) => connection.end()))
  }

  /** Makes a connection without calls idle, or closes it if it is no longer wanted, and serves the calls that wait. */
  #free(connection: Connection): void {
    if (!connection.closed) {
      // The refusals of an outage do not mean that the database accepts only few connections.
      if (this.#shortage?.outage !== undefined) this.#shortage = undefined
      this.#states.move(connection, 'idle')
      if (this.#mustClose(connection)) {
        this.#states.move(connection, 'closing')
        void connection.end()
      }
    }
    this.#serveWaiting()
  }

  #mustClose({ openedAt, server }: Connection): boolean {
    const open = this.#states.count()
    const isOld = performance.now() - openedAt > LIFETIME_MS
    const isSpare = open > this.#settings.poolSize && open > this.#states.count('parked') + 1
    return this.#ended || isOld || isSpare || this.#hosts.isOutdated(server)
  }

  #destroyAll(connections: readonly Connection[]): void {
    // All of them first: when one ends, the calls that wait get the idle ones.
    for (const connection of connections) this.#states.move(connection, 'closing')
    for (const connection of connections) connection.destroy()
  }

  get #accepted(): number {
    return this.#shortage?.accepted ?? this.#settings.poolSize
  }

  /** How many connections writes may use, parked ones included. Reads and writes share a single connection. */
  get #mostForWrites(): number {
    return Math.max(1, this.#accepted - Math.max(1, Math.floor(this.#accepted * READ_SHARE)))
  }

  get #writeRoom(): number {
    return this.#mostForWrites - this.#states.writes
  }

  /** Whether a connection is open that is not parked, or one is being opened, so that a call may succeed. */
  #mayAnswer(): boolean {
    return this.#opening > 0 || this.#states.count() > this.#states.count('parked')
  }

  #refuseEarly(kind: Kind): void {
    const { outage, refusedAt = 0 } = this.#shortage ?? {}
    if (outage !== undefined && !this.#mayAnswer() && performance.now() - refusedAt < PAUSE_MS) throw outage
    if (kind === 'write' && this.hasOnlyParkedWrites) {
      throw new StoreBusy(
        `${this.parked.length} writes have no answer from PostgreSQL yet, and there is no connection for more; it may be waiting for a synchronous standby.`,
      )
    }
    const most = kind === 'read' ? this.#accepted : this.#mostForWrites
    if (this.#waiting.count(kind) >= most * WAITING_PER_CONNECTION) throw this.#busy(kind)
  }

  #busy(kind: Kind): StoreBusy {
    const { inUse, parked } = this.stats
    return new StoreBusy(
      `All connections to PostgreSQL are busy: ${inUse} in use, ${parked} without an answer; ${this.#waiting.count(kind)} ${kind}s wait.`,
    )
  }

  /** Hands idle connections to the calls that have waited longest, and opens more for the rest. */
  #serveWaiting(): void {
    if (this.#waiting.isEmpty) return
    for (const idle of this.#states.all('idle')) {
      const call = this.#waiting.next(this.#writeRoom > 0)
      if (call === undefined) return
      call.resolve(this.#states.begin(idle, call.kind, call.isShared))
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
    const open = this.#states.count() + this.#opening
    if (open < this.#accepted || open <= this.#states.count('parked')) return true
    const shortage = this.#shortage
    if (shortage === undefined || open >= this.#settings.poolSize) return false
    return performance.now() >= shortage.refusedAt + shortage.pauseMs
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
    this.#destroyAll(this.#states.all('idle').filter(({ server }) => this.#hosts.isOutdated(server)))
    this.#free(connection)
  }

  /** Refuses the waiting calls only if no connection works; otherwise they get one that is released. */
  #handleFailedOpen(error: StoreUnavailable): void {
    const earlier = this.#shortage
    const isOutage = !this.#mayAnswer()
    this.#shortage = {
      accepted: Math.max(1, this.#states.count() + this.#opening),
      refusedAt: performance.now(),
      pauseMs: earlier === undefined ? FIRST_PAUSE_MS : Math.min(2 * earlier.pauseMs, LONGEST_PAUSE_MS),
      outage: isOutage ? error : earlier?.outage,
    }
    if (!isOutage) return
    this.#hosts.reportLost(error.message)
    this.#waiting.refuseAll(error)
  }
}

function closed(): StoreUnavailable {
  return new StoreUnavailable('The store is closed.')
}

// Runs the calls of a process to PostgreSQL, over a bounded number of connections. In the driver's pool, calls wait forever
// while the database is unavailable or hangs. In this one:
//
// - Every wait is bounded: connecting (network, TLS, login and a first statement), waiting for a free connection, and a
//   call, whose limit is a little longer than the server's statement timeout.
// - A call without an answer in time fails. A read's connection is closed. A write may be committed and wait for its
//   synchronous standby, where no statement timeout applies; cancelling it would make data visible that is not replicated.
//   So its connection is parked: open and counted until the answer comes, and then used again. However long the standby is
//   away, the server has at most `pool_size` sessions of this pool (two if that is 1). If every connection for writes is
//   parked, writes are refused at once. The store is not ready then, nor while a write is overdue and no later one has
//   succeeded.
// - A parked connection whose server is gone would never answer. So while some are parked, another connection queries every
//   second which of them the server still works on, and the others are closed.
// - Writes leave a share of the connections to reads, so that a lock that every create waits for does not stop lists. Calls
//   wait in order, but a read overtakes writes that have no connection left. The queues are bounded.
// - Short reads, of one statement that an index answers, are pipelined on a connection in use if none is free: several cost
//   the driver and the server little more than one (connection-states.ts). A read without an answer after a quarter of a second is sent
//   again on a free connection; the connection that it shared is closed if no answer comes within the limit of a call.
//   Behind PgBouncer nothing is pipelined.
// - A connection that can't be opened fails no call while others work: the pool uses fewer, and tries one more after a pause.
//   If none works, the waiting calls are refused, and new calls for a moment too, to spare an unavailable database.
import { setTimeout } from 'node:timers/promises'
import { type ConnectionStats, NoWrites, type Report, StoreUnavailable } from '../store.ts'
import { pingShards } from './citus/distributed.ts'
import { type Connection, type Database, inTransaction, type Kind, type ServerFacts } from './pool/connection.ts'
import type { ConnectionSettings } from './pool/connection-settings.ts'
import { Connections } from './pool/connections.ts'
import { asStoreFailure, breaksConnection, NO_ROOM, sqlState, wasRolledBack } from './pool/failures.ts'
import { Overdue, withinTime } from '../../timing.ts'

type Work<T> = (sql: Database) => Promise<T>

/** How long after the server's statement timeout a call without an answer is overdue: the server hangs. */
const GRACE_MS = 500

const WATCH_PARKED_MS = 1000

/** How long a pipelined read may take before it is sent again on a free connection. */
const PIPELINED_WAIT_MS = 250

const isWorthRepeating = (error: unknown) => breaksConnection(error) || wasRolledBack(error)

export class Pool {
  readonly #settings: ConnectionSettings
  readonly #connections: Connections
  #isWatchingParked = false
  /** Whether a statement found no room; the store finds out whether there is room again. */
  hasFoundNoRoom = false
  /** How many writes have ended, in whichever way. */
  writes = 0
  /** Whether a write got no answer in time, and none has succeeded since. */
  #hasOverdueWrite = false

  constructor(settings: ConnectionSettings, report: Report = () => {}) {
    this.#settings = settings
    this.#connections = new Connections(settings, report)
  }

  get #limitMs(): number {
    return this.#settings.statementTimeoutMs + GRACE_MS
  }

  /** Runs a read, and retries it once if it was rolled back, or its connection broke: an idle one may have been dead already. */
  read<T>(work: Work<T>): Promise<T> {
    return this.#attempt('read', work, isWorthRepeating)
  }

  /** Runs a read of one short statement, which may share a connection with others. */
  async readShort<T>(work: Work<T>): Promise<T> {
    const mayShare = !this.#settings.pgbouncer
    const shared = mayShare ? this.#connections.join() : undefined
    if (shared !== undefined) {
      const answer = work(shared.sql)
      const leave = () => this.#connections.release(shared)
      answer.then(leave, leave)
      try {
        return await withinTime(answer, PIPELINED_WAIT_MS)
      } catch (error) {
        // It took too long, or failed, perhaps because of another call on this connection.
        if (error instanceof Overdue) this.#limitPipelined(shared, answer)
      }
    }
    return this.#attempt('read', work, isWorthRepeating, mayShare)
  }

  /** Runs a write. Retries it only if the server rolled it back: otherwise it may have taken effect. */
  write<T>(work: Work<T>): Promise<T> {
    return this.#attempt('write', work, wasRolledBack)
  }

  /** Runs a write of several statements in one transaction. */
  writeTransaction<T>(work: Work<T>): Promise<T> {
    return this.write((sql) => inTransaction(sql, work))
  }

  /** Runs an idempotent write, which is retried once like a read. */
  writeRepeatable<T>(work: Work<T>): Promise<T> {
    return this.#attempt('write', work, isWorthRepeating)
  }

  /** Runs a write without retries, with this time limit. */
  writeWithin<T>(limitMs: number, work: Work<T>): Promise<T> {
    return this.#run('write', work, limitMs, false)
  }

  /**
   * Resolves if reads work, and writes probably do: it attempts none. Writes that wait for a connection are no failure. Resolves with
   * the number of shards, each of which has answered; undefined if the animals are not distributed.
   */
  async ping(): Promise<number | undefined> {
    const shards = await this.read(async (sql) => {
      const [row] = await sql<{ readOnly: string }[]>`SELECT current_setting('transaction_read_only') AS "readOnly"`
      // Thrown inside the read, the error closes the connection, like a refused write: another host may accept writes.
      if (row!.readOnly === 'on')
        throw new NoWrites('PostgreSQL is read-only: a standby, or a primary that was demoted.')
      return pingShards(sql)
    })
    const { parked, hasOnlyParkedWrites } = this.#connections
    if (hasOnlyParkedWrites || (parked.length > 0 && this.#hasOverdueWrite))
      throw new NoWrites(`${parked.length} writes have no answer from PostgreSQL yet.`)
    return shards
  }

  get stats(): ConnectionStats {
    return this.#connections.stats
  }

  end(): Promise<void> {
    return this.#connections.end()
  }

  /** Runs a call, and retries it once if `mayRetry` allows it, but never after it was refused or overdue. */
  async #attempt<T>(kind: Kind, work: Work<T>, mayRetry: (error: unknown) => boolean, isShared = false): Promise<T> {
    try {
      return await this.#run(kind, work, this.#limitMs, isShared).catch((error: unknown) => {
        const isFinal = error instanceof StoreUnavailable || error instanceof Overdue
        if (isFinal || !mayRetry(error)) throw error
        return this.#run(kind, work, this.#limitMs, false)
      })
    } catch (error) {
      this.hasFoundNoRoom ||= sqlState(error) === NO_ROOM
      throw asStoreFailure(error)
    }
  }

  async #run<T>(kind: Kind, work: Work<T>, limitMs: number, isShared: boolean): Promise<T> {
    const connection = await this.#connections.acquire(kind, isShared)
    let answer: Promise<T> | undefined
    try {
      answer = work(connection.sql)
      if (kind === 'write')
        answer.then(
          () => (this.#hasOverdueWrite = false),
          () => {},
        )
      const result = await withinTime(answer, limitMs)
      this.#connections.release(connection)
      return result
    } catch (error) {
      if (error instanceof Overdue) this.#abandon(connection, kind, answer!)
      else if (breaksConnection(error)) this.#connections.discard(connection)
      else this.#connections.release(connection)
      throw error
    } finally {
      if (kind === 'write') this.writes += 1
    }
  }

  /** Closes the connection of a pipelined read without an answer in time, which would be in use until the network gives up. */
  #limitPipelined(connection: Connection, answer: Promise<unknown>): void {
    withinTime(answer, this.#limitMs - PIPELINED_WAIT_MS).catch((error: unknown) => {
      if (error instanceof Overdue) this.#abandon(connection, 'read', answer)
    })
  }

  #abandon(connection: Connection, kind: Kind, answer: Promise<unknown>): void {
    if (kind === 'read') this.#connections.discard(connection)
    else {
      this.#hasOverdueWrite = true
      this.#connections.park(connection, answer)
    }
    void this.#watchParked()
  }

  async #watchParked(): Promise<void> {
    if (this.#isWatchingParked) return
    this.#isWatchingParked = true
    while (this.#connections.parked.length > 0) {
      await setTimeout(WATCH_PARKED_MS, undefined, { ref: false })
      await this.read((sql) => this.#closeAbandoned(sql)).catch(() => {
        // While no connection works, the state of the parked ones is unknown.
      })
    }
    this.#isWatchingParked = false
  }

  /** Closes the parked connections that no server process works on. Behind PgBouncer, whose pids differ, checks only the server. */
  async #closeAbandoned(sql: Database): Promise<void> {
    const candidates = this.#connections.parked
    const working = await sql<Pick<ServerFacts, 'pid' | 'startedAt'>[]>`
      SELECT pid, (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint::text AS "startedAt" FROM pg_stat_activity
      WHERE wait_event_type IS DISTINCT FROM 'Client'`
    // One that was answered meanwhile may be used by another call.
    const { parked } = this.#connections
    for (const connection of candidates.filter((candidate) => parked.includes(candidate))) {
      const { pid, startedAt } = connection.server
      const isActive = working.some(
        (each) => each.startedAt === startedAt && (this.#settings.pgbouncer || each.pid === pid),
      )
      if (!isActive) connection.destroy()
    }
  }
}

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
// - Of several hosts, the one that last worked is tried first. A primary that was replaced is recognised by its timeline
//   and not used (hosts.ts).
//
// connections.ts keeps the connections and bounds the wait for one; this file decides about running calls: time limits,
// retries, parking.
import { setTimeout } from 'node:timers/promises'
import type { ColumnValue } from '../pet-columns.ts'
import { type ConnectionStats, NoWrites, type Report, StoreUnavailable } from '../store.ts'
import { recorded } from '../traced.ts'
import { type Connection, type Database, inTransaction, PREPARED } from './connection.ts'
import type { ConnectionSettings } from './connection-settings.ts'
import { Connections } from './connections.ts'
import { asStoreFailure, breaksConnection, wasRolledBack } from './failures.ts'
import type { Kind } from './waiting-calls.ts'
import { Overdue, withinTime } from '../../timing.ts'

type Work<T> = (sql: Database) => Promise<T>

/** How long after the server's statement timeout a call without an answer is overdue: the server hangs. */
const GRACE_MS = 500

const WATCH_PARKED_MS = 1000

/** How long a pipelined read may take before it is sent again on a free connection. */
const PIPELINED_WAIT_MS = 250

export class Pool {
  readonly #settings: ConnectionSettings
  readonly #connections: Connections
  #isWatchingParked = false
  /** Whether a write got no answer in time, and none has succeeded since. */
  #hasOverdueWrite = false

  constructor(settings: ConnectionSettings, report: Report = () => {}) {
    this.#settings = settings
    this.#connections = new Connections(settings, report)
  }

  get #limitMs(): number {
    return this.#settings.statementTimeoutMs + GRACE_MS
  }

  /** Runs a read, and retries it once if its connection broke, because an idle connection may have been dead already. */
  read<T>(work: Work<T>): Promise<T> {
    return this.#attempt('read', work, breaksConnection)
  }

  /** Reads rows as arrays by a statement, which is prepared; a short one may share a connection. */
  rows(text: string, values: (string | bigint)[], isShort = true): Promise<ColumnValue[][]> {
    const work: Work<ColumnValue[][]> = async (sql) => {
      const rows: unknown = await sql.unsafe(text, values, PREPARED).values()
      return rows as ColumnValue[][]
    }
    return isShort ? this.readShort(work) : this.read(work)
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
        return await recorded('statement', withinTime(answer, PIPELINED_WAIT_MS))
      } catch (error) {
        // It took too long, or failed, perhaps because of another call on this connection.
        if (error instanceof Overdue) this.#limitPipelined(shared, answer)
      }
    }
    return this.#attempt('read', work, breaksConnection, mayShare)
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
    return this.#attempt('write', work, (error) => breaksConnection(error) || wasRolledBack(error))
  }

  /** Runs a write without retries, with this time limit. */
  writeWithin<T>(limitMs: number, work: Work<T>): Promise<T> {
    return this.#run('write', work, limitMs, false)
  }

  /** Resolves if reads work, and writes probably do: it attempts none. Writes that wait for a connection are no failure. */
  async ping(): Promise<void> {
    await this.read(async (sql) => {
      const [row] = await sql<{ readOnly: string }[]>`SELECT current_setting('transaction_read_only') AS "readOnly"`
      // Thrown inside the read, the error closes the connection, like a refused write: another host may accept writes.
      if (row!.readOnly === 'on')
        throw new NoWrites('PostgreSQL is read-only: a standby, or a primary that was demoted.')
    })
    const { parked, hasOnlyParkedWrites } = this.#connections
    if (hasOnlyParkedWrites || (parked.length > 0 && this.#hasOverdueWrite))
      throw new NoWrites(`${parked.length} writes have no answer from PostgreSQL yet.`)
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
      throw asStoreFailure(error)
    }
  }

  async #run<T>(kind: Kind, work: Work<T>, limitMs: number, isShared: boolean): Promise<T> {
    const connection = await recorded('wait for a connection', this.#connections.acquire(kind, isShared))
    let answer: Promise<T> | undefined
    try {
      answer = work(connection.sql)
      if (kind === 'write')
        answer.then(
          () => (this.#hasOverdueWrite = false),
          () => {},
        )
      // A single statement is its own transaction: statement and commit are one round trip.
      const step = kind === 'write' ? 'statement and commit' : 'statement'
      const result = await recorded(step, withinTime(answer, limitMs))
      this.#connections.release(connection)
      return result
    } catch (error) {
      if (error instanceof Overdue) this.#abandon(connection, kind, answer!)
      else if (breaksConnection(error)) this.#connections.discard(connection)
      else this.#connections.release(connection)
      throw error
    }
  }

  /** Closes the connection of a pipelined read without an answer in time, which would be in use until the network gives up. */
  #limitPipelined(connection: Connection, answer: Promise<unknown>): void {
    withinTime(answer, this.#limitMs - PIPELINED_WAIT_MS).catch((error: unknown) => {
      if (error instanceof Overdue) this.#abandon(connection, 'read', answer)
    })
  }

  #abandon(connection: Connection, kind: Kind, answer: Promise<unknown>): void {
    if (kind === 'read') connection.destroy()
    else {
      this.#hasOverdueWrite = true
      this.#connections.park(connection, answer)
    }
    this.#connections.probeIdle()
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
    const working = await sql<{ pid: number }[]>`
      SELECT pid FROM pg_stat_activity WHERE wait_event_type IS DISTINCT FROM 'Client'`
    const pids = new Set(working.map(({ pid }) => pid))
    // One that was answered meanwhile may be used by another call.
    const { parked } = this.#connections
    for (const connection of candidates.filter((candidate) => parked.includes(candidate))) {
      const isActive = this.#settings.pgbouncer || pids.has(connection.server.pid)
      if (!this.#connections.isCurrent(connection) || !isActive) connection.destroy()
    }
  }
}

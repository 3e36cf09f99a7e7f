// The calls of a process to PostgreSQL, over a bounded number of connections. The driver has a pool of its own, but its
// calls wait forever while the database is unavailable or hangs. Here:
//
// - Every wait is bounded. Connecting (network, TLS, login and a first statement) has one time limit, waiting for a free
//   connection has one, and a call has one a little longer than the server's own statement timeout.
// - A call without an answer in time fails. A read's connection is closed. A write may be committed and wait for its
//   synchronous standby, where no statement timeout applies; cancelling it would reveal what is not replicated. So its
//   connection is parked: open and counted until the answer comes, and then used again. The server never has more of our
//   processes than `pool_size`, however long its standby is away. If every connection for writes is parked, writes are
//   refused at once. The store is not ready then, nor from an overdue write until another write has succeeded.
// - A parked connection whose server is gone would never answer. So while some are parked, another connection asks every
//   second which of them the server still works on, and the others are closed.
// - Writes leave a share of the connections to reads, so a lock that every create waits for stops
//   no list. Calls wait in order, but a read passes writes that may not go on. The queues are bounded.
// - Short reads, of one statement that an index answers, are sent one behind the other on a connection if none is free: the
//   driver and the server take several at once for little more than one (calls.ts). A read that is held up by the one before
//   it for a quarter of a second is sent again, alone. Behind PgBouncer nothing is shared.
// - A connection that can't be opened fails no call while others work: fewer are used for a while, then one more is tried.
//   If none works, the calls that wait are refused, and new ones for a moment too, to spare a database that is unavailable.
// - Of several hosts, the one that last worked is tried first. A primary that was replaced is recognised by its timeline
//   and not used (hosts.ts).
//
// Connections.ts keeps the connections, this file decides about the calls: time limits, retries, parking.
import { setTimeout } from 'node:timers/promises'
import { type ConnectionStats, NoWrites, type Report, StoreUnavailable } from '../store.ts'
import type { Kind } from './calls.ts'
import type { Connection, Database } from './connection.ts'
import type { ConnectionSettings } from './connection-settings.ts'
import { Connections } from './connections.ts'
import { asStoreFailure, breaksConnection, wasRolledBack } from './failures.ts'
import { Overdue, withinTime } from '../within-time.ts'

type Work<T> = (sql: Database) => Promise<T>

/** How long after the server's statement timeout a call without an answer means that the server hangs. */
const GRACE_MS = 500

const ASK_ABOUT_PARKED_MS = 1000

/** How long a short read may be held up by others on the same connection. */
const HELD_UP_MS = 250

export class Pool {
  readonly #settings: ConnectionSettings
  readonly #connections: Connections
  readonly #limitMs: number
  readonly #mayShare: boolean
  #isAsking = false
  /** Whether a write got no answer in time, and none has succeeded since. */
  #hasOverdueWrite = false

  constructor(settings: ConnectionSettings, report: Report = () => {}) {
    this.#settings = settings
    this.#connections = new Connections(settings, report)
    this.#limitMs = settings.statementTimeoutMs + GRACE_MS
    this.#mayShare = !settings.pgbouncer
  }

  /** Runs a read, and once more if its connection broke, since that may have been stale. */
  read<T>(work: Work<T>): Promise<T> {
    return this.#attempt('read', work, breaksConnection)
  }

  /** Runs a read of one short statement, which may share a connection with others. */
  async readShort<T>(work: Work<T>): Promise<T> {
    const shared = this.#mayShare ? this.#connections.join() : undefined
    if (shared !== undefined) {
      const answer = work(shared.sql)
      const leave = () => this.#connections.release(shared)
      answer.then(leave, leave)
      try {
        return await withinTime(answer, HELD_UP_MS)
      } catch {
        // Held up, or failed, perhaps because of another call on this connection.
      }
    }
    return this.#attempt('read', work, breaksConnection, this.#mayShare)
  }

  /** Runs a write. It is not repeated, since it may have taken effect, unless the server rolled it back. */
  write<T>(work: Work<T>): Promise<T> {
    return this.#attempt('write', work, wasRolledBack)
  }

  /** Runs an idempotent write, which is repeated like a read. */
  writeRepeatable<T>(work: Work<T>): Promise<T> {
    return this.#attempt('write', work, (error) => breaksConnection(error) || wasRolledBack(error))
  }

  /** Runs a write without retries, and with a time limit of its own. */
  writeWithin<T>(limitMs: number, work: Work<T>): Promise<T> {
    return this.#run('write', work, limitMs, false)
  }

  /** Resolves if reads work, and writes too as far as is known without one. A pool that is merely busy with writes is fine. */
  async ping(): Promise<void> {
    await this.read(async (sql) => {
      const [row] = await sql<{ readOnly: string }[]>`SELECT current_setting('transaction_read_only') AS "readOnly"`
      // Thrown here, the error closes the connection, as that of a refused write does: another host may accept writes.
      if (row!.readOnly === 'on')
        throw new NoWrites('PostgreSQL is read-only: a standby, or a primary that was demoted.')
    })
    const { parked, hasOnlyParkedWrites } = this.#connections
    if (hasOnlyParkedWrites || (parked.size > 0 && this.#hasOverdueWrite))
      throw new NoWrites(`${parked.size} writes have no answer from PostgreSQL yet.`)
  }

  get stats(): ConnectionStats {
    return this.#connections.stats
  }

  end(): Promise<void> {
    return this.#connections.end()
  }

  /** Runs a call, and once more if `mayRepeat` allows it; never after a call that used up its time. */
  async #attempt<T>(kind: Kind, work: Work<T>, mayRepeat: (error: unknown) => boolean, isShared = false): Promise<T> {
    try {
      return await this.#run(kind, work, this.#limitMs, isShared).catch((error: unknown) => {
        const over = error instanceof StoreUnavailable || error instanceof Overdue
        if (over || !mayRepeat(error)) throw error
        return this.#run(kind, work, this.#limitMs, false)
      })
    } catch (error) {
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
    }
  }

  #abandon(connection: Connection, kind: Kind, answer: Promise<unknown>): void {
    if (kind === 'read') connection.destroy()
    else {
      this.#hasOverdueWrite = true
      this.#connections.park(connection, answer)
    }
    this.#connections.probeIdle()
    void this.#askAboutParked()
  }

  async #askAboutParked(): Promise<void> {
    if (this.#isAsking) return
    this.#isAsking = true
    const { parked } = this.#connections
    while (parked.size > 0) {
      await setTimeout(ASK_ABOUT_PARKED_MS, undefined, { ref: false })
      await this.read((sql) => this.#closeAbandoned(sql)).catch(() => {
        // As long as no connection works, nothing is known about those that are parked.
      })
    }
    this.#isAsking = false
  }

  /** Closes the parked connections that the server has left, or waits for us on. Behind PgBouncer it does not know ours. */
  async #closeAbandoned(sql: Database): Promise<void> {
    const { parked } = this.#connections
    const candidates = [...parked]
    const working = await sql<
      { pid: number }[]
    >`SELECT pid FROM pg_stat_activity WHERE wait_event_type IS DISTINCT FROM 'Client'`
    const pids = new Set(working.map(({ pid }) => pid))
    for (const connection of candidates) {
      // Answered meanwhile: another call may be using it by now.
      if (!parked.has(connection)) continue
      const isWorkedOn = this.#settings.pgbouncer || pids.has(connection.server.pid)
      if (!this.#connections.isCurrent(connection) || !isWorkedOn) connection.destroy()
    }
  }
}

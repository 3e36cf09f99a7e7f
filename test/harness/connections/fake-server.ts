// Stands in for a PostgreSQL server where only the bookkeeping of the pool is tested: what happens to a connection is what
// the test makes happen, at once. The tests test/postgres/*.test.ts have real servers.
import { syncBuiltinESMExports } from 'node:module'
import type { TestContext } from 'node:test'
import timers, { setImmediate } from 'node:timers/promises'
import postgres from 'postgres'
import { Connection, type Database, type ServerFacts } from '../../../src/store/postgres/pool/connection.ts'
import {
  type ConnectionSettings,
  type Host,
  parseConnection,
  hostAndPort,
} from '../../../src/store/postgres/pool/connection-settings.ts'

export class FakeConnection {
  closed = false
  readonly openedAt = performance.now()
  readonly sql: Database
  readonly host: string
  readonly server: ServerFacts
  #onGone: (() => void) | undefined

  constructor(host: string, server: ServerFacts, sql: Database, onGone: (connection: Connection) => void) {
    this.host = host
    this.server = server
    this.sql = sql
    this.#onGone = () => onGone(this as unknown as Connection)
  }

  destroy(): void {
    this.closed = true
    this.#onGone?.()
    this.#onGone = undefined
  }

  async end(): Promise<void> {
    this.destroy()
  }
}

export class FakeServer {
  /** All connections that were ever opened, in their order. */
  readonly opened: FakeConnection[] = []
  /** How often a connection was attempted. */
  attempts = 0
  /** Refuses further connections with this error, to this host or to all. */
  refusal: Error | undefined
  refusedHost: string | undefined
  /** The answer to every statement. */
  rows: readonly object[] = []
  /** Holds the answer back until it resolves. */
  answering: Promise<void> | undefined
  statements = 0
  facts: ServerFacts = { pid: 0, startedAt: 'yesterday', role: 'primary', readOnly: false }

  constructor(mock: TestContext['mock']) {
    mock.method(
      Connection,
      'open',
      async (_settings: ConnectionSettings, at: Host, onGone: (connection: Connection) => void) => {
        this.attempts += 1
        const host = hostAndPort(at)
        if (this.refusal !== undefined && (this.refusedHost ?? host) === host) throw this.refusal
        const sql = (async () => {
          this.statements += 1
          await this.answering
          return this.rows
        }) as unknown as Database
        const connection = new FakeConnection(host, { ...this.facts, pid: this.attempts }, sql, onGone)
        this.opened.push(connection)
        return connection as unknown as Connection
      },
    )
  }

  get open(): FakeConnection[] {
    return this.opened.filter(({ closed }) => !closed)
  }
}

export function settingsOf(parameters: string, hosts = 'h'): ConnectionSettings {
  return parseConnection(`postgres://${hosts}/pets?${parameters}`)
}

/** The error of a connection that broke. */
export const BROKEN = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })

/** An error that a server reports, with its severity and SQLSTATE. */
export function serverSays(severity: string, code: string): Error {
  return Object.assign(new postgres.PostgresError('no'), { severity, code })
}

/** Lets everything happen that waits for nothing but its turn. */
export async function someTurns(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await setImmediate()
}

/** From now on, a wait of the code for some time ends when the test ends it. */
export function holdTimers(mock: TestContext['mock']) {
  const waits: { ms: number; end: () => void }[] = []
  const held = mock.method(timers, 'setTimeout', (ms: number) => new Promise<void>((end) => waits.push({ ms, end })))
  syncBuiltinESMExports()
  return {
    waits,
    [Symbol.dispose]() {
      held.mock.restore()
      syncBuiltinESMExports()
    },
  }
}

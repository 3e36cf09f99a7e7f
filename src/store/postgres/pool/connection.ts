// One connection to one host. This file opens the driver's socket, so that it can destroy the socket when the host hangs.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { checkServerIdentity, type ConnectionOptions, type PeerCertificate } from 'node:tls'
import postgres, { type Sql } from 'postgres'
import type { ColumnValue } from '../../pet-columns.ts'
import { type ConnectionSettings, type Host, hostAndPort, type Tls } from './connection-settings.ts'
import { breaksConnection, wasRefused } from './failures.ts'
import { withinTime } from '../../../timing.ts'

/** The driver's query function; int8 is a bigint in both directions. */
export type Database = Sql<{ bigint: bigint }>

/**
 * Prepares a statement given as text, also one without parameters, which the driver would have planned each time. Composing one from
 * fragments in the driver takes a quarter of the time of a page.
 */
export const PREPARED = { prepare: true, simple: false }

/** Reads rows as arrays by a prepared statement. */
export async function readRows(sql: Database, text: string, ...values: (string | bigint)[]): Promise<ColumnValue[][]> {
  const rows: unknown = await sql.unsafe(text, values, PREPARED).values()
  return rows as ColumnValue[][]
}

export interface ServerFacts {
  /** The process that serves the connection. */
  pid: number
  /** When the server was started, in microseconds; a different time means another server or a restart. */
  startedAt: string
  role: 'primary' | 'standby'
  readOnly: boolean
  /**
   * The timeline of a primary, in its cluster: each promotion of a standby begins one with a higher number. Undefined if the server does
   * not report it.
   */
  timeline?: { system: string; number: number } | undefined
}

/** A read has no effect, so it can be retried and abandoned; a write can't. */
export type Kind = 'read' | 'write'

/** What a pool does with a connection; the head of connections.ts draws the ways between these states. */
export type State =
  /** `parked`: its write is overdue. `closing`: it gets no more calls. */
  | { readonly is: 'parked' | 'closing' }
  | { readonly is: 'idle'; readonly since: number }
  | {
      readonly is: 'in use'
      readonly kind: Kind
      /** Whether short reads may join. */
      readonly isShared: boolean
      calls: number
      /** The earliest time at which the server may have started on the oldest call. */
      since: number
    }

/** A connection is never reopened: when it breaks, the pool opens another. */
export class Connection {
  readonly sql: Database
  readonly openedAt = performance.now()
  /** The host and port that the connection was opened to. */
  readonly host: string
  server!: ServerFacts
  /** Set by the pool. */
  state: State = { is: 'closing' }
  /** Whether the connection is unusable; its queries in progress may still take a moment to end. */
  closed = false
  #socket: Socket | undefined
  #onGone: (() => void) | undefined

  private constructor(settings: ConnectionSettings, at: Host, onGone: (connection: Connection) => void) {
    const { host, port } = at
    const { user, password, database, tls, statementTimeoutMs, pgbouncer, applicationName } = settings
    this.#onGone = () => onGone(this)
    this.host = hostAndPort(at)
    this.sql = postgres({
      host: [host],
      port: [port],
      // For undefined, the driver falls back to PGUSER, PGPASSWORD and PGDATABASE.
      user,
      password,
      database,
      ssl: typeof tls === 'object' ? verifying(tls, host) : tls,
      max: 1,
      prepare: !pgbouncer,
      fetch_types: false,
      // The pool, not the driver, limits the time to connect and the lifetime of a connection.
      connect_timeout: 0,
      idle_timeout: 0,
      max_lifetime: 0,
      backoff: false,
      keep_alive: 10,
      types: { bigint: postgres.BigInt },
      connection: {
        application_name: applicationName,
        ...(pgbouncer
          ? {}
          : { statement_timeout: statementTimeoutMs, idle_in_transaction_session_timeout: 2 * statementTimeoutMs }),
      },
      onnotice: () => {},
      onclose: () => this.destroy(),
      socket: async () => {
        if (this.#socket !== undefined || this.closed)
          throw Object.assign(new Error('the connection has ended'), { code: 'CONNECTION_ENDED' })
        this.#socket = dial(host, port)
        await once(this.#socket, 'connect')
        return this.#socket
      },
      // `socket` is an option of the driver that its types leave out.
    } as object as postgres.Options<{ bigint: postgres.PostgresType<bigint> }>)
  }

  /** Connects to this host and asks the server about itself; rejects if that fails or takes too long, or if the host must accept writes and does not. */
  static async open(
    settings: ConnectionSettings,
    host: Host,
    onGone: (connection: Connection) => void,
  ): Promise<Connection> {
    const connection = new Connection(settings, host, onGone)
    try {
      connection.server = await withinTime(askServer(connection.sql, settings), settings.connectTimeoutMs)
      if (settings.needsWritable && connection.server.readOnly) throw new Error('it is read-only: a standby')
      return connection
    } catch (error) {
      connection.destroy()
      throw error
    }
  }

  /** Closes the connection at once. Queries in progress fail in this process, but the server may go on with them. */
  destroy(): void {
    this.closed = true
    this.#socket?.destroy()
    this.#onGone?.()
    this.#onGone = undefined
  }

  /** Waits at most a second for queries in progress, then closes the connection. */
  async end(): Promise<void> {
    this.closed = true
    await this.sql.end({ timeout: 1 })
    this.destroy()
  }
}

/**
 * Runs statements in one transaction. If one fails because the connection broke, the driver must not know: it would send
 * ROLLBACK to a socket that it no longer has, and the TypeError would end the process (porsager/postgres, issue 1208). The
 * pool closes the connection, so that PostgreSQL rolls back.
 */
export function inTransaction<T>(sql: Database, work: (sql: Database) => Promise<T>): Promise<T> {
  const broken = Promise.withResolvers<never>()
  const ended = sql.begin((transaction) =>
    work(transaction as unknown as Database).catch((error: unknown) => {
      if (!breaksConnection(error)) throw error
      broken.reject(error)
      return new Promise<never>(() => {})
    }),
  )
  return Promise.race([ended as Promise<T>, broken.promise])
}

/** Verifies the name `host`: for an IP address the driver passes no server name, and Node would verify "localhost". */
function verifying({ ca, name }: Exclude<Tls, string | false>, host: string): ConnectionOptions {
  const checkName = (_name: string, certificate: PeerCertificate) =>
    name ? checkServerIdentity(host, certificate) : undefined
  return { ...(ca === undefined ? {} : { ca }), checkServerIdentity: checkName }
}

/** Opens a socket. Sets its `host`, from which the driver reads the server name for TLS. */
function dial(host: string, port: number): Socket {
  const socket = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect({ host, port, noDelay: true })
  return Object.assign(socket, { host, port })
}

/** Reads whether the server accepts writes, and its identity: after a failover, an address may lead to another server. */
async function askServer(sql: Database, { pgbouncer }: ConnectionSettings): Promise<ServerFacts> {
  const [facts] = await sql<ServerFacts[]>`
    SELECT pg_backend_pid() AS pid, (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint::text AS "startedAt",
      CASE WHEN pg_is_in_recovery() THEN 'standby' ELSE 'primary' END AS role,
      pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' AS "readOnly"`
  // Behind PgBouncer the next statement may run on another server, whose timeline would be mistaken for this one's.
  return { ...facts!, timeline: pgbouncer || facts!.role === 'standby' ? undefined : await askTimeline(sql) }
}

/** Reads the timeline: the first eight hexadecimal digits of a WAL file's name. Some managed databases refuse this query. */
async function askTimeline(sql: Database): Promise<ServerFacts['timeline']> {
  try {
    const [row] = await sql<{ system: string; file: string }[]>`
      SELECT system_identifier::text AS system, pg_walfile_name(pg_current_wal_lsn()) AS file FROM pg_control_system()`
    return { system: row!.system, number: Number.parseInt(row!.file.slice(0, 8), 16) }
  } catch (error) {
    if (wasRefused(error)) return undefined
    throw error
  }
}

// One connection to one host. The driver gets a socket that we open, so that we can close it when the host hangs.
import { connect, type Socket } from 'node:net'
import { checkServerIdentity, type ConnectionOptions, type PeerCertificate } from 'node:tls'
import postgres, { type Sql } from 'postgres'
import type { ConnectionSettings, Host, Tls } from './connection-settings.ts'

/** The driver's query function; int8 is a bigint in both directions. */
export type Database = Sql<{ bigint: bigint }>

/** A connection is never reopened: when it breaks, the pool opens another. */
export class Connection {
  readonly sql: Database
  readonly openedAt = performance.now()
  /** Whether it is no longer usable. */
  closed = false
  #socket: Socket | undefined

  private constructor(settings: ConnectionSettings, { host, port }: Host, onClose: (connection: Connection) => void) {
    const { user, password, database, tls, connectTimeoutMs, statementTimeoutMs, pgbouncer, applicationName } = settings
    this.sql = postgres({
      host: [host],
      port: [port],
      // The driver falls back to PGUSER, PGPASSWORD and PGDATABASE.
      ...(user === undefined ? {} : { user }),
      ...(password === undefined ? {} : { password }),
      ...(database === undefined ? {} : { database }),
      ssl: typeof tls === 'object' ? verifying(tls, host) : tls,
      max: 1,
      prepare: !pgbouncer,
      fetch_types: false,
      connect_timeout: connectTimeoutMs / 1000,
      // The pool decides when a connection ends, never the driver.
      idle_timeout: 0,
      max_lifetime: 0,
      backoff: false,
      keep_alive: 10,
      types: { bigint: postgres.BigInt },
      connection: {
        application_name: applicationName,
        ...(pgbouncer ? {} : { statement_timeout: statementTimeoutMs, idle_in_transaction_session_timeout: 2 * statementTimeoutMs }),
      },
      onnotice: () => {},
      onclose: () => {
        this.closed = true
        onClose(this)
      },
      socket: async () => {
        if (this.#socket !== undefined) throw new Error('the connection has ended')
        this.#socket = await dial(host, port, connectTimeoutMs)
        return this.#socket
      },
      // `socket` is an option of the driver that its types leave out.
    } as object as postgres.Options<{ bigint: postgres.PostgresType<bigint> }>)
  }

  /** Connects to this host; rejects if that fails, or if the host must accept writes and does not. */
  static async open(settings: ConnectionSettings, host: Host, onClose: (connection: Connection) => void): Promise<Connection> {
    const connection = new Connection(settings, host, onClose)
    try {
      const [row] = await connection.sql`
        SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' AS "readOnly"`
      if (settings.needsWritable && row?.['readOnly'] === true) throw new Error('it is read-only: a standby')
      return connection
    } catch (error) {
      connection.destroy()
      throw error
    }
  }

  /** Closes it at once; queries in progress fail. */
  destroy(): void {
    this.closed = true
    this.#socket?.destroy()
  }

  /** Waits for queries in progress, at most a second, then closes it. */
  async end(): Promise<void> {
    this.closed = true
    await this.sql.end({ timeout: 1 })
    this.#socket?.destroy()
  }
}

/** For an IP address, the driver passes no server name to Node, which would then verify the name "localhost". */
function verifying({ ca, name }: Exclude<Tls, string | false>, host: string): ConnectionOptions {
  const checkName = (_name: string, certificate: PeerCertificate) => (name ? checkServerIdentity(host, certificate) : undefined)
  return { ...(ca === undefined ? {} : { ca }), checkServerIdentity: checkName }
}

function dial(host: string, port: number, timeoutMs: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect({ host, port, noDelay: true })
    const timer = setTimeout(() => socket.destroy(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs)
    socket.once('connect', () => {
      clearTimeout(timer)
      socket.removeListener('error', reject)
      // The driver reads the server name for TLS from here.
      resolve(Object.assign(socket, { host, port }))
    })
    socket.once('error', (error) => {
      clearTimeout(timer)
      reject(error)
    })
  })
}

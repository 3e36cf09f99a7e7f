// What a server says about itself: whether it accepts writes, and which server it is, after a failover behind one address too.
import type { Sql } from 'postgres'
import type { ConnectionSettings } from './connection-settings.ts'
import { wasRefused } from './failures.ts'

export interface ServerFacts {
  /** The process that serves the connection. */
  pid: number
  /** When the server was started; another time means another server, or that it was restarted. */
  startedAt: string
  role: 'primary' | 'standby'
  readOnly: boolean
  /** The timeline of a primary: each promotion of a standby begins a higher one. Undefined if the database can't tell. */
  timeline?: Timeline | undefined
}

export interface Timeline {
  /** The identifier of the cluster, the same on a primary and its standbys. */
  system: string
  number: number
}

export async function askServer(sql: Sql, { pgbouncer }: ConnectionSettings): Promise<ServerFacts> {
  const [facts] = await sql<ServerFacts[]>`
    SELECT pg_backend_pid() AS pid, pg_postmaster_start_time()::text AS "startedAt",
      CASE WHEN pg_is_in_recovery() THEN 'standby' ELSE 'primary' END AS role,
      pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' AS "readOnly"`
  // Behind PgBouncer the next statement may run on another server.
  return { ...facts!, timeline: pgbouncer || facts!.role === 'standby' ? undefined : await askTimeline(sql) }
}

/** The name of a WAL file begins with its timeline, in eight hexadecimal digits. Some managed databases refuse to tell. */
async function askTimeline(sql: Sql): Promise<Timeline | undefined> {
  try {
    const [told] = await sql<{ system: string; file: string }[]>`
      SELECT system_identifier::text AS system, pg_walfile_name(pg_current_wal_lsn()) AS file FROM pg_control_system()`
    return { system: told!.system, number: Number.parseInt(told!.file.slice(0, 8), 16) }
  } catch (error) {
    if (wasRefused(error)) return undefined
    throw error
  }
}

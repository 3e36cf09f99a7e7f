// Adds entries to the audit trail in PostgreSQL, in the statement of the change that they describe.
import type { Fragment } from 'postgres'
import type { AuditEvent } from '../account-store.ts'
import type { Database } from './connection.ts'

/** Makes a change and adds its audit event in one statement; resolves with false, and adds none, if nothing was changed. */
export async function withEvent(sql: Database, event: AuditEvent, change: Fragment): Promise<boolean> {
  const { count } = await sql`WITH changed AS (${change} RETURNING 1) ${insertEvent(sql, event)} FROM changed`
  return count > 0
}

/** The statement ends in a SELECT, so that a FROM can be appended. */
export function insertEvent(sql: Database, { at, accountId, action, via, subject, detail }: AuditEvent) {
  return sql`
    INSERT INTO audit_events (at, account_id, action, via, subject, detail)
    SELECT ${at}::bigint, ${accountId}, ${action}, ${via}, ${subject}, ${detail ?? null}::text`
}

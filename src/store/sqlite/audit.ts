// Adds entries to the audit trail in SQLite, inside the transaction of the change that they describe.
import type { DatabaseSync } from 'node:sqlite'
import type { AuditEvent } from '../account-store.ts'

export function prepareAppendEvent(db: DatabaseSync): (event: AuditEvent) => void {
  const insert = db.prepare(
    'INSERT INTO audit_events (at, account_id, action, via, subject, detail) VALUES (?, ?, ?, ?, ?, ?)',
  )
  return ({ at, accountId, action, via, subject, detail }) => {
    insert.run(at, accountId, action, via, subject, detail ?? null)
  }
}

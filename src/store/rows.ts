// Rows as databases return them, where a missing value is NULL.
import type { ApiKey, AuditEvent } from './account-store.ts'

export type KeyRow = { [Field in keyof ApiKey]: ApiKey[Field] | null }

export function asKey(row: KeyRow | undefined): ApiKey | undefined {
  if (row === undefined) return undefined
  const { expiresAt, revokedAt, lastUsedAt, ...key } = row
  return {
    ...key,
    expiresAt: expiresAt ?? undefined,
    revokedAt: revokedAt ?? undefined,
    lastUsedAt: lastUsedAt ?? undefined,
  } as ApiKey
}

export type EventRow = Omit<AuditEvent, 'detail'> & { detail: string | null }

export function asEvent({ detail, ...event }: EventRow): AuditEvent {
  return detail === null ? event : { ...event, detail }
}

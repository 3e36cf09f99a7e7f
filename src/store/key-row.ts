// A key as databases give it: a time that is missing is NULL there and undefined here.
import type { ApiKey } from './store.ts'

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

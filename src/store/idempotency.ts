// Derives what the store needs to make a create safe to repeat from the idempotency key that the client chose.
import { hash } from 'node:crypto'
import { IDEMPOTENCY } from '../contract/limits.ts'
import type { NewPet } from '../contract/pets.ts'
import type { Idempotency } from './store.ts'

export const IDEMPOTENCY_KEPT_MS = IDEMPOTENCY.keptHours * 3_600_000

export function idempotencyFor(accountId: string, key: string, newPet: NewPet, now: number): Idempotency {
  return { accountId, key, fingerprint: fingerprintOf(newPet), now, validSince: now - IDEMPOTENCY_KEPT_MS }
}

/** Hashes the parsed animal, not the bytes: the same animal written in another way is the same request. */
export function fingerprintOf({ name, categoryId, status }: NewPet): Buffer {
  return hash('sha256', JSON.stringify([name, String(categoryId), status]), 'buffer')
}

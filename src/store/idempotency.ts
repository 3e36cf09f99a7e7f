// Makes a create safe to retry: derives the idempotency record from the client's key, the animal and the time.
// Each engine's pets.ts compares it with that of an earlier create.
import { hash } from 'node:crypto'
import { IDEMPOTENCY } from '../contract/limits.ts'
import { FIELD_LIST, type FieldName, type NewPet } from '../contract/pets.ts'
import type { Idempotency } from './store.ts'

export const IDEMPOTENCY_KEPT_MS = IDEMPOTENCY.keptHours * 3_600_000

/** A record from the future counts: it was made while a clock was ahead, or this clock is behind, and the animal is stored. */
export function idempotencyFor(accountId: string, key: string, newPet: NewPet, now: number): Idempotency {
  return { accountId, key, fingerprint: fingerprintOf(newPet), now, validSince: now - IDEMPOTENCY_KEPT_MS }
}

/** The fields of version 1.0.0. Never add one: the fingerprints that are stored would no longer match. */
const BY_POSITION: readonly FieldName[] = ['name', 'categoryId', 'status']
const BY_NAME = FIELD_LIST.filter(({ name }) => !BY_POSITION.includes(name))

/**
 * Hashes the parsed animal, not the bytes: the same animal in another JSON notation is the same request. A field added
 * after 1.0.0 is hashed with its name, and left out if it has its default or no value.
 */
export function fingerprintOf(newPet: NewPet): Buffer {
  const later = BY_NAME.filter((field) => newPet[field.name] !== field.default)
  const parts = [
    ...BY_POSITION.map((name) => String(newPet[name])),
    ...later.map(({ name }) => [name, String(newPet[name])]),
  ]
  return hash('sha256', JSON.stringify(parts), 'buffer')
}

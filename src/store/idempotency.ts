// Makes a create safe to retry. The whole rule:
//
// - Key: the client's Idempotency-Key, of 1 to 255 characters, for each account; http/operations/handlers.ts parses the header. The console
//   derives one from its form (console/animals/animal-adding.ts).
// - Fingerprint: `fingerprintOf` says what counts as the same animal.
// - Record: `idempotencyFor` makes it, and pets.ts of each engine stores it in the transaction of the animal. A second create with the
//   key finds it: the same fingerprint replays the first answer, another one is a mismatch (422).
// - Two at a time: SQLite runs them one after the other. On PostgreSQL the second waits for the first and replays its answer; if that
//   takes too long, it is told that the first is still in progress (409, `RETRY_AFTER.inProgress`).
// - Lifetime: a record counts for 24 hours. A chore (chores.ts) purges older ones.
//
// The numbers of the interface are in `IDEMPOTENCY` of contract/limits.ts, the others here.
import { hash } from 'node:crypto'
import { IDEMPOTENCY } from '../contract/limits.ts'
import { FIELD_LIST, type FieldName, type NewPet } from '../contract/pets.ts'

/** What makes a create safe to repeat: the account's idempotency key, the fingerprint of the animal, and the time. */
export interface Idempotency {
  accountId: string
  key: string
  fingerprint: Uint8Array
  now: number
  /** Records created before this time have expired. */
  validSince: number
}

export const IDEMPOTENCY_KEPT_MS = IDEMPOTENCY.keptHours * 3_600_000

/** How long a create waits for an earlier one with the same key, on PostgreSQL: less than the default statement timeout of 5 s. */
export const IN_PROGRESS_WAIT_MS = 3000

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

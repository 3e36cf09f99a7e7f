// What makes a create safe to repeat, from the key that its sender gave it.
import { hash } from 'node:crypto'
import { IDEMPOTENCY } from '../contract/operations.ts'
import type { NewPet } from '../contract/pets.ts'
import type { Once } from './store.ts'

export const ONCE_KEPT_MS = IDEMPOTENCY.keptHours * 3_600_000

export function onceFor(accountId: string, key: string, newPet: NewPet, now: number): Once {
  return { accountId, key, fingerprint: fingerprint(newPet), now, validSince: now - ONCE_KEPT_MS }
}

/** Of the parsed animal, not of the bytes: another spelling of the same animal is the same request. */
function fingerprint({ name, categoryId, status }: NewPet): Buffer {
  return hash('sha256', JSON.stringify([name, String(categoryId), status]), 'buffer')
}

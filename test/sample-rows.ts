// Accounts, keys and events to fill a store with, as short as a test can name them.
import { samplePet } from '../assurance/harness/sample-pet.ts'
import type { NewPet } from '../src/contract/pets.ts'
import { PET_COLUMNS, valuesOf } from '../src/store/pet-columns.ts'
import type { StoredRecord } from '../src/store/records.ts'
import type { Account, ApiKey, AuditEvent } from '../src/store/account-store.ts'

/** A row of the table of animals, with every column that it has. */
export function petRow(id: bigint, fields: Partial<NewPet> = {}): StoredRecord {
  const values = valuesOf({ ...samplePet, ...fields })
  return { id, ...Object.fromEntries(PET_COLUMNS.map((column, index) => [column, values[index]!])) }
}

export function account(id: string, email = `${id}@example.com`): Account {
  return { id, email, passwordHash: 'hash', createdAt: 1_790_000_000_000 }
}

export function apiKey(id: string, accountId: string): ApiKey {
  return {
    id,
    accountId,
    name: 'laptop 💻',
    environment: 'staging',
    lastFour: 'abcd',
    createdAt: 1_790_000_000_000,
    expiresAt: undefined,
    revokedAt: undefined,
    lastUsedAt: undefined,
  }
}

export function event(accountId: string, action: AuditEvent['action'] = 'account.created'): AuditEvent {
  return { at: 1_790_000_000_000, accountId, action, via: 'command line', subject: 'someone' }
}

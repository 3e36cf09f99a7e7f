// Accounts, keys and events to fill a store with, as short as a test can name them.
import { samplePet } from './sample-pet.ts'
import type { NewPet } from '../../../src/contract/pets.ts'
import { PET_COLUMNS, valuesOf } from '../../../src/store/pet-columns.ts'
import type { StoredRecord } from '../../../src/store/records.ts'
import type { Account, ApiKey, AuditEvent, FailedRequest, Session } from '../../../src/store/account-store.ts'
import type { Idempotency } from '../../../src/store/idempotency.ts'
import type { Store } from '../../../src/store/store.ts'

/** A row of the table of animals, with every column that it has. */
export function petRow(id: bigint, fields: Partial<NewPet> = {}): StoredRecord {
  const values = valuesOf({ ...samplePet, ...fields })
  return {
    id,
    ...Object.fromEntries(PET_COLUMNS.map((column, index) => [column, values[index]!])),
    added_at: null,
    added_by: null,
    batch_id: null,
  }
}

export function account(id: string, email = `${id}@example.com`): Account {
  return { id, email, passwordHash: 'hash', createdAt: 1_790_000_000_000, role: 'member' }
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

export function session(byte: number, accountId: string, fields: Partial<Session> = {}): Session {
  return { tokenHash: Buffer.alloc(32, byte), accountId, createdAt: 1, lastSeenAt: 1, ...fields }
}

export function failedRequest(accountId: string, fields: Partial<FailedRequest> = {}): FailedRequest {
  const request = { keyId: 'key_1', requestId: 'r', operation: 'getPet', status: 404, code: 'c', message: 'm' }
  return { at: 1, accountId, ...request, ...fields }
}

export function idempotency(accountId: string, key: string, fields: Partial<Idempotency> = {}): Idempotency {
  return { accountId, key, fingerprint: Buffer.alloc(32), now: 1000, validSince: 0, ...fields }
}

export async function addAccount({ accounts }: Store, id: string): Promise<Account> {
  await accounts.createAccount(account(id), event(id))
  return account(id)
}

/** Adds a key whose hash is made of this byte. */
export function addKey({ accounts }: Store, id: string, accountId: string, byte: number) {
  return accounts.createKey({ ...apiKey(id, accountId), hash: Buffer.alloc(32, byte) }, event(accountId, 'key.created'))
}

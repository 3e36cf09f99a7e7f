// Creates that share a batch, and so a statement.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { Pet, PetStatus } from '../../contract/pets.ts'
import { openSqliteStore } from './sqlite-store.ts'

it('Creates of one batch each get the id of their own animal, also beside others, and one that is refused fails alone', async () => {
  const { pets, ...store } = openSqliteStore(':memory:')
  const pet = (name: string, status = 'available') => ({ name, categoryId: 3n, status: status as PetStatus })
  const idempotency = { accountId: 'acct_1', key: 'k', fingerprint: Buffer.from('f'), now: 2, validSince: 1 }
  const creates = Array.from({ length: 100 }, (_, index) => {
    if (index === 50) return pets.create(pet('bad', 'no status'))
    return pets.create(pet(`Rex ${index}`), index === 20 ? idempotency : undefined, { at: index, by: `key_${index}` })
  })
  const settled = await Promise.allSettled(creates)
  const all = new Map((await pets.list({ limit: 200 })).map((each) => [each.id, each]))
  assert.equal(all.size, 99)
  for (const [index, create] of settled.entries()) {
    assert.equal(create.status, index === 50 ? 'rejected' : 'fulfilled')
    if (create.status === 'rejected') continue
    const { pet: created } = create.value as { pet: Pet }
    assert.deepEqual(all.get(created.id), { id: created.id, ...pet(`Rex ${index}`) })
    assert.deepEqual(await pets.addition(created.id), { at: index, by: `key_${index}` })
  }
  await store.close()
})

// Creates that share a batch, and so a statement.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { Pet, PetStatus } from '../../contract/pets.ts'
import { openSqliteStore } from './sqlite-store.ts'

it('Creates of one batch each get the id of their own animal, also beside others, and one that is refused fails alone', async () => {
  const { pets, ...store } = openSqliteStore(':memory:')
  const pet = (name: string, status = 'available') => ({ name, categoryId: 3n, status: status as PetStatus })
  const idempotency = { accountId: 'acct_1', key: 'k', fingerprint: Buffer.from('f'), now: 2, validSince: 1 }
  // A batch with a row that is refused is written row by row.
  for (const bad of [undefined, 50]) {
    const creates = Array.from({ length: 100 }, (_, index) =>
      index === bad
        ? pets.create(pet('bad', 'no status'))
        : pets.create(pet(`Rex ${index}`), index === 20 ? idempotency : undefined, { at: index, by: `key_${index}` }),
    )
    for (const [index, create] of (await Promise.allSettled(creates)).entries()) {
      assert.equal(create.status, index === bad ? 'rejected' : 'fulfilled')
      if (create.status === 'rejected') continue
      const { id } = (create.value as { pet: Pet }).pet
      assert.deepEqual(await pets.get(id), { id, ...pet(`Rex ${index}`) })
      assert.deepEqual(await pets.addition(id), { at: index, by: `key_${index}` })
    }
  }
  assert.equal((await pets.list({ limit: 999 })).length, 198)
  await store.close()
})

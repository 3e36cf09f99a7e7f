// What a service still writes when it stops, and what it does not wait for.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sqlite } from '../harness/engines.ts'
import { startPetstore } from './harness.ts'
import { ask, close, connectionsTo, connectToWorker } from './worker-connection.ts'

const list = (key: string) => `GET /v1/pets HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\n\r\n`

describe('A service that stops', () => {
  for (const workers of [1, 2]) {
    it(`has written the calls of its last moment, of every process (workers: ${workers})`, async () => {
      await using database = await sqlite.newDatabase()
      const env = { PETSTORE_WORKERS: String(workers), PETSTORE_LOG_LEVEL: 'notice' }
      const petstore = await startPetstore({ database: database.url, env })
      const connections = workers === 1 ? connectionsTo(petstore, 1) : [await connectToWorker(petstore.url)]
      assert.deepEqual(await ask(connections, list(petstore.key)), [200])
      close(connections)
      assert.equal(await petstore.stop(), true)
      await using again = await startPetstore({ database: database.url })
      const counts = await again.store.accounts.usageSince(petstore.account.id, 0)
      assert.deepEqual(
        counts.map(({ operation, calls }) => [operation, calls]),
        [['listPets', 1]],
      )
    })
  }

  it('closes its database even if the last calls cannot be written, and says so', async ({ mock }) => {
    await using petstore = await startPetstore()
    await petstore.call('/pets')
    const write = mock.method(petstore.store.accounts, 'recordUsage', () => Promise.reject(new Error('away')))
    const closing = mock.method(petstore.store, 'close')
    assert.equal(await petstore.stop(), true)
    assert.ok(write.mock.callCount() > 0)
    assert.equal(closing.mock.callCount(), 1)
    assert.ok(petstore.logged.some(({ msg }) => String(msg).startsWith('the last usage counts and failed requests')))
  })
})

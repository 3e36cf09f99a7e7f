// Who added, changed and removed an animal: what people see beside the fields, on both engines.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { samplePet } from '../assurance/harness/sample-pet.ts'
import type { Addition } from '../src/store/pet-changes.ts'
import { signedIn } from './console-client.ts'
import { describeService } from './harness.ts'

describeService('An animal', (service) => {
  it('remembers when it was added and by which key or account, and only the store tells', async () => {
    const { store, apiKey, account } = service()
    const started = Date.now()
    const idOf = async (headers?: Record<string, string>) => {
      const answer = await service().add({ name: 'Rex', categoryId: 3 }, headers)
      const text = await answer.text()
      assert.doesNotMatch(text, /added|key_|acct_/)
      return BigInt((JSON.parse(text) as { id: number }).id)
    }
    // Several in one turn share a statement on PostgreSQL.
    const byKey = await Promise.all([idOf(), idOf(), idOf({ 'Idempotency-Key': 'once' })])
    assert.equal(await idOf({ 'Idempotency-Key': 'once' }), byKey[2])
    const person = await signedIn(service())
    const form = await person.fillIn('/animals/new', { name: 'Max', categoryId: '3' })
    const byAccount = BigInt(/added=(\d+)/.exec(form.location ?? '')![1]!)

    for (const [id, by] of [...byKey.map((each) => [each, apiKey.id] as const), [byAccount, account.id] as const]) {
      const addition = await store.pets.addition(id)
      assert.equal(addition?.by, by)
      assert.ok(addition.at >= started && addition.at <= Date.now(), String(addition.at))
      assert.deepEqual(Object.keys((await store.pets.get(id))!), ['id', 'name', 'categoryId', 'status'])
    }
    assert.doesNotMatch((await person.get('/animals.csv')).body, /key_|acct_/)
  })

  it('that came from a file has only the time, one of an earlier release neither', async () => {
    const { pets, imports } = service().store
    const newest = async () => (await pets.list({ limit: 1 }))[0]!.id
    await imports.begin({ hash: 'h', file: 'pets.csv', rowsTotal: 1 }, 1, false)
    await imports.addRows({ hash: 'h', rowsDone: 0, rowsTotal: 1 }, [samplePet], 1_790_000_000_000)
    const expected: Addition = { at: 1_790_000_000_000, by: undefined }
    assert.deepEqual(await pets.addition(await newest()), expected)
    await pets.createMany([samplePet])
    assert.equal(await pets.addition(await newest()), undefined)
    assert.equal(await pets.addition(-1n), undefined)
  })
})

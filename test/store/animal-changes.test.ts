// Who added, changed and removed an animal: what people see beside the fields, on both engines.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ENGINES } from '../harness/databases/engines.ts'
import { samplePet } from '../harness/databases/sample-pet.ts'
import { encodeCursor } from '../../src/contract/list-query.ts'
import { CategoryNames } from '../../src/contract/category-name.ts'
import { allOf } from '../../src/contract/pet-words.ts'
import type { Pet } from '../../src/contract/pets.ts'
import { aboutPet, type AuditEvent, type PetData } from '../../src/store/account-store.ts'
import { copyStore } from '../../src/store/database/copy-store.ts'
import type { ChangePlace, ChangeQuery, PetChanges } from '../../src/store/pet-changes.ts'
import type { Addition } from '../../src/store/pet-columns.ts'
import type { Removed, Store } from '../../src/store/store.ts'
import { signedIn } from '../harness/connections/console-client.ts'
import { describeService, expectError } from '../harness/harness.ts'
import { petstore } from '../harness/programs/in-process-command.ts'
import { addAccount, event, idempotency } from '../harness/databases/sample-rows.ts'
import { withStore } from '../harness/databases/with-store.ts'

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

  it('that came from a file has only the time, one that was made up neither', async () => {
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

  it('that breaks a limit of its fields comes in by no way, nor by a change', async () => {
    const { pets, imports } = service().store
    const [stored] = await addAll(['Otto'])
    const [bad, file] = [
      { ...samplePet, name: ' ' },
      { hash: 'limit', file: 'limit.csv', rowsDone: 0, rowsTotal: 1 },
    ]
    await imports.begin(file, 1, false)
    const ways = [
      () => pets.create(bad),
      () => pets.create(bad, idempotency('acct_1', 'limit')),
      () => pets.createMany([samplePet, bad]),
      () => imports.addRows(file, [bad], 1),
      () => pets.update(stored!.id, stored!, { ...stored!, name: ' ' }, AUTHOR),
    ]
    for (const way of ways) await assert.rejects(way(), /^RangeError: name must be a string of 1 to/, String(way))
    assert.deepEqual(await pets.list({ limit: 1 }), [stored])
  })

  it('that is removed is gone everywhere: a 404, no list, count or search has it, and pages go on behind it', async () => {
    const { store } = service()
    const counts = await store.pets.countByStatus()
    const [first, gone, last] = await addAll(['Gone 1', 'Gone 2', 'Gone 3'])
    const list = async (query: string) => (await (await service().call(`/pets${query}`)).json()) as { id: number }[]
    const idsAt = async (query: string) => (await list(query)).map(({ id }) => BigInt(id))
    // Both are cached where the engine can tell its version.
    assert.deepEqual(await idsAt('?limit=3'), [last!.id, gone!.id, first!.id])
    assert.equal((await service().call(`/pets/${gone!.id}`)).status, 200)
    assert.deepEqual(await remove(store, gone!), { outcome: 'removed' })

    assert.deepEqual(await idsAt('?limit=2'), [last!.id, first!.id])
    assert.deepEqual(await idsAt(`?limit=1&cursor=${encodeCursor(gone!.id)}`), [first!.id])
    await expectError(await service().call(`/pets/${gone!.id}`), 'pet_not_found')
    assert.equal(await store.pets.get(gone!.id), undefined)
    assert.equal(await store.pets.addition(gone!.id), undefined)
    assert.deepEqual(await store.pets.countByStatus(), { ...counts, available: counts.available + 2 })
    const { pets } = await store.pets.search({ words: ['gone'], limit: 9 })
    assert.deepEqual(
      pets.map(({ id }) => id),
      [last!.id, first!.id],
    )
  })

  it('is removed only as the person saw it, once, and its history keeps what it was', async () => {
    const { store } = service()
    const [pet] = await addAll(['Otto'])
    const sold = { ...pet!, status: 'sold' as const }
    const changed = changeOf(pet!, { from: { status: 'available' }, to: { status: 'sold' } })
    await store.pets.update(pet!.id, pet!, sold, AUTHOR)
    assert.deepEqual(await remove(store, pet!), { outcome: 'conflict', pet: sold })
    assert.deepEqual(await store.accounts.changesOf(pet!.id, 9), [changed])
    const outcomes = await Promise.all([remove(store, sold), remove(store, sold)])
    assert.deepEqual(outcomes.map(({ outcome }) => outcome).toSorted(), ['missing', 'removed'])
    assert.deepEqual(await store.accounts.changesOf(pet!.id, 9), [removalOf(sold), changed])
    assert.deepEqual(await store.pets.update(pet!.id, sold, pet!, AUTHOR), { outcome: 'missing' })
  })

  it('that was removed still answers a replay of its create', async () => {
    const { store } = service()
    const create = () => service().add({ name: 'Rex', categoryId: 3 }, { 'Idempotency-Key': 'removed' })
    const first = await (await create()).text()
    const id = BigInt((JSON.parse(first) as { id: number }).id)
    await remove(store, (await store.pets.get(id))!)
    const replay = await create()
    assert.deepEqual([await replay.text(), replay.headers.get('idempotent-replayed')], [first, 'true'])
    assert.equal(await store.pets.get(id), undefined)
  })

  function addAll(names: readonly string[]): Promise<Pet[]> {
    return Promise.all(
      names.map(async (name) => {
        const created = await service().store.pets.create({ name, categoryId: 3n, status: 'available' })
        assert.ok('pet' in created)
        return created.pet
      }),
    )
  }
})

for (const engine of ENGINES) {
  describe(`An animal that is removed on ${engine.name}`, () => {
    const create = async ({ pets }: Store, count = 1) => {
      const created = await Promise.all(Array.from({ length: count }, () => pets.create(samplePet)))
      return created.map((each) => ('pet' in each ? each.pet : assert.fail(each.outcome)))
    }

    it('leaves its id unused: after a restart, in a copy and in a backup; doctor finds nothing', async () => {
      await using database = await engine.newDatabase()
      const open = <T>(work: (store: Store) => Promise<T>, url = database.url) => withStore(url, work)
      const newest = await open(async (store) => {
        const pets = await create(store, 3)
        const last = pets.at(-1)!
        assert.deepEqual(await remove(store, last), { outcome: 'removed' })
        return last.id
      })
      const isAbove = async (store: Store) => assert.ok((await create(store))[0]!.id > newest)
      for (const to of ENGINES) {
        await using target = await to.newDatabase()
        await open((store) => withStore(target.url, (copy) => copyStore(store, copy, () => {})))
        await open(isAbove, target.url)
      }
      if (engine.name === 'SQLite') {
        const file = `${database.url.slice('sqlite:'.length)}.backup`
        assert.equal((await petstore(['backup', file, '--database', database.url])).code, 0)
        await open(isAbove, `sqlite:${file}`)
      }
      await open(isAbove)
      const doctor = await petstore(['doctor', '--database', database.url, '--json'])
      assert.doesNotMatch(doctor.stdout, /"problem"/)
    })

    it('and changed at once is one or the other, with one event', async () => {
      await using database = await engine.newDatabase()
      await withStore(database.url, async (store) => {
        for (const pet of await create(store, 10)) {
          const renamed = { ...pet, name: 'Otto' }
          const [updated, removed] = await Promise.all([
            store.pets.update(pet.id, pet, renamed, AUTHOR),
            remove(store, pet),
          ])
          const isRemoved = removed.outcome === 'removed'
          assert.deepEqual(updated, { outcome: isRemoved ? 'missing' : 'updated' })
          if (!isRemoved) assert.deepEqual(removed, { outcome: 'conflict', pet: renamed })
          const [only, ...others] = await store.accounts.changesOf(pet.id, 9)
          assert.deepEqual(
            [only, others],
            [isRemoved ? removalOf(pet) : changeOf(pet, { from: { name: pet.name }, to: { name: 'Otto' } }), []],
          )
        }
      })
    })

    it('is not counted, also while others are added', async () => {
      await using database = await engine.newDatabase()
      await withStore(database.url, async (store) => {
        const first = await create(store, 40)
        await Promise.all([...first.slice(0, 25).map((pet) => remove(store, pet)), create(store, 40)])
        const expected = { available: 0, pending: 0, sold: 0, [samplePet.status]: 55 }
        assert.deepEqual(await store.pets.countByStatus(), expected)
      })
    })
  })

  describe(`The changes of all animals on ${engine.name}`, () => {
    const shown = ({ changes }: PetChanges) =>
      changes.map(({ action, subject }) =>
        action === 'pet.added' ? subject.replace(/^.* \((\d+)\)$/, 'added $1') : `${action} ${subject}`,
      )
    const all = async ({ pets }: Store, query: ChangeQuery) => {
      const found: string[] = []
      for (let after: ChangePlace | undefined; ;) {
        const page = await pets.changes({ ...query, after })
        assert.ok(page.changes.length === query.limit || page.next === undefined)
        found.push(...shown(page))
        if (page.next === undefined) return found
        after = page.next
      }
    }

    it('come newest first, page by page, of everybody and of one person', async () => {
      await using database = await engine.newDatabase()
      await withStore(database.url, async (store) => {
        const add = (at: number, by: string) => store.pets.create(samplePet, undefined, { at, by })
        const changed = (at: number, accountId: string, id: bigint) =>
          store.accounts.appendEvent({
            ...event(accountId, 'pet.changed'),
            at,
            ...aboutPet({ ...samplePet, id }),
          })
        await store.pets.createMany([samplePet, samplePet])
        await changed(5, 'acct_1', 1n)
        await add(10, 'key_1')
        await add(20, 'acct_1')
        await store.pets.createMany([samplePet])
        await changed(20, 'acct_1', 4n)
        await store.accounts.appendEvent({ ...event('acct_1', 'session.started'), at: 25 })
        await add(30, 'acct_2')
        await store.pets.remove(3n, samplePet, { ...event('acct_2'), at: 40 })
        const name = (id: number) => aboutPet({ ...samplePet, id: BigInt(id) }).subject
        const expected = [
          `pet.removed ${name(3)}`,
          'added 6',
          `pet.changed ${name(4)}`,
          'added 5',
          'added 4',
          `pet.changed ${name(1)}`,
          'added 2',
          'added 1',
        ]
        for (const limit of [1, 2, 3, 8, 9]) assert.deepEqual(await all(store, { limit }), expected, `by ${limit}`)
        const byOne = [`pet.changed ${name(4)}`, 'added 4', `pet.changed ${name(1)}`]
        for (const limit of [1, 9]) assert.deepEqual(await all(store, { by: 'acct_1', limit }), byOne)
        assert.deepEqual(await all(store, { by: 'acct_2', limit: 2 }), [`pet.removed ${name(3)}`, 'added 6'])
        await add(50, 'key_1')
        for (const id of ['acct_2', 'acct_1', 'acct_idle']) await addAccount(store, id)
        await store.accounts.appendEvent(event('acct_idle', 'session.started'))
        const authors = async () => [...(await store.accounts.authors())]
        const [one, two] = ['acct_1@example.com', 'acct_2@example.com']
        assert.deepEqual(
          await authors(),
          [
            ['acct_1', one],
            ['acct_2', two],
          ],
          'not who only signed in, nor a key',
        )
        await store.accounts.setName('acct_1', 'Zoë', event('acct_1', 'account.renamed'))
        assert.deepEqual(
          await authors(),
          [
            ['acct_2', two],
            ['acct_1', 'Zoë'],
          ],
          'by name',
        )
        for (const id of ['acct_1', 'acct_2'])
          await store.accounts.removeAccount(id, event('acct_2', 'account.removed'))
        assert.deepEqual(await authors(), [['acct_1', 'Zoë (left)']], 'of those who are gone, who had a name')
        const { changes } = await store.pets.changes({ limit: 1 })
        const done: Addition = { at: 50, by: 'key_1' }
        assert.deepEqual(changes, [
          { action: 'pet.added', ...aboutPet({ ...samplePet, id: 7n }), detail: undefined, data: undefined, done },
        ])
      })
    })
  })
}

const AUTHOR = { at: 1_790_000_000_000, accountId: 'acct_1', via: 'command line' }

function changeOf(pet: Pet, data: PetData): AuditEvent {
  return { ...AUTHOR, action: 'pet.changed', ...aboutPet(pet), data }
}

function removalOf(pet: Pet): AuditEvent {
  return { ...changeOf(pet, allOf(pet, new CategoryNames())), action: 'pet.removed' }
}

function remove({ pets }: Store, pet: Pet): Promise<Removed> {
  return pets.remove(pet.id, pet, AUTHOR)
}

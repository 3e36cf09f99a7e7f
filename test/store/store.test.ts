// What every engine promises, case by case: the port of store/store.ts.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import * as fc from 'fast-check'
import { readConfig } from '../../src/config.ts'
import { INT64_MAX, INT64_MIN } from '../../src/contract/int64.ts'
import { type NewPet, type Pet, PET_STATUSES } from '../../src/contract/pets.ts'
import { openStore } from '../../src/store/opening/open-store.ts'
import { kindOf, KINDS } from '../../src/store/records.ts'
import { type AuditEvent, FAILED_REQUESTS_KEPT, aboutPet, type Session } from '../../src/store/account-store.ts'
import { FOLDED_MOST } from '../../src/store/security-log.ts'
import type { Idempotency } from '../../src/store/idempotency.ts'
import type { Store } from '../../src/store/store.ts'
import { ENGINES, type TestDatabase } from '../harness/databases/engines.ts'
import {
  account,
  addAccount,
  addKey,
  apiKey,
  event,
  failedRequest,
  idempotency as once,
  session,
} from '../harness/databases/sample-rows.ts'
import { samplePet } from '../harness/databases/sample-pet.ts'

const rex: NewPet = { ...samplePet, name: 'Rex', status: 'available' }

for (const engine of ENGINES) {
  describe(`the store on ${engine.name}`, { concurrency: false }, () => {
    let database: TestDatabase
    let store: Store

    const open = () => openStore(readConfig({ database: database.url }, {}).database)
    before(async () => {
      database = await engine.newDatabase()
      store = await open()
    })
    after(async () => {
      await store.close()
      await database[Symbol.asyncDispose]()
    })

    async function addPet(newPet: NewPet, idempotency?: Idempotency) {
      const created = await store.pets.create(newPet, idempotency)
      assert.ok('pet' in created, created.outcome)
      return created.pet
    }

    describe('animals', () => {
      it('gives each animal a new, larger id', async () => {
        const first = await addPet(rex)
        const second = await addPet(rex)
        assert.ok(second.id > first.id)
      })

      it('gives back what went in, int64 to the last digit and every character', async () => {
        const names = [
          'Rex',
          ' spaces kept ',
          "Robert'); DROP TABLE pets;--",
          '🐈‍⬛',
          'עברית',
          'é',
          'e\u0301',
          '\u0001',
          'x'.repeat(255),
        ]
        for (const [index, name] of names.entries()) {
          const newPet: NewPet = { name, categoryId: index % 2 === 0 ? INT64_MAX : INT64_MIN, status: 'sold' }
          const { id } = await addPet(newPet)
          assert.deepEqual({ ...(await store.pets.get(id)) }, { id, ...newPet })
        }
      })

      it('finds no animal under an id that was never given, at both ends of int64', async () => {
        for (const id of [INT64_MIN, -1n, 0n, INT64_MAX]) assert.equal(await store.pets.get(id), undefined)
      })

      it('lists newest first, below or above a position, of one status, at most so many', async () => {
        const sold = await addPet({ ...rex, status: 'sold' })
        const pending = await addPet({ ...rex, status: 'pending' })
        const newest = await addPet({ ...rex, status: 'sold' })
        const ids = async (query: Parameters<Store['pets']['list']>[0]) =>
          (await store.pets.list(query)).map(({ id }) => id)
        assert.deepEqual(await ids({ limit: 3 }), [newest.id, pending.id, sold.id])
        assert.deepEqual(await ids({ limit: 2, before: newest.id }), [pending.id, sold.id])
        assert.deepEqual(await ids({ limit: 2, status: 'sold' }), [newest.id, sold.id])
        assert.deepEqual(await ids({ limit: 1, status: 'sold', before: newest.id }), [sold.id])
        assert.deepEqual(await ids({ limit: 5, before: INT64_MIN }), [])
        assert.deepEqual(await ids({ limit: 2, after: sold.id }), [newest.id, pending.id])
        assert.deepEqual(await ids({ limit: 1, after: sold.id }), [pending.id])
        assert.deepEqual(await ids({ limit: 2, status: 'sold', after: sold.id }), [newest.id])
        assert.deepEqual(await ids({ limit: 5, after: INT64_MAX }), [])
      })

      it('lists of each status what lies below or above each position, and nothing of another status', async () => {
        for (let time = 0; time < 2; time += 1) for (const status of PET_STATUSES) await addPet({ ...rex, status })
        const all = await store.pets.list({ limit: 6 })
        const ids = (pets: readonly Pet[]) => pets.map(({ id }) => id)
        for (const { id } of all) {
          for (const status of PET_STATUSES) {
            const alike = all.filter((pet) => pet.status === status)
            const newer = alike.filter((pet) => pet.id > id)
            const older = alike.filter((pet) => pet.id < id)
            assert.deepEqual(ids(await store.pets.list({ status, after: id, limit: 9 })), ids(newer))
            const below = await store.pets.list({ status, before: id, limit: 9 })
            assert.deepEqual(ids(below.filter((pet) => pet.id >= all.at(-1)!.id)), ids(older))
            assert.ok(below.every((pet) => pet.status === status))
          }
        }
      })

      it('adds many at once', async () => {
        const { sold, ...others } = await store.pets.countByStatus()
        await store.pets.createMany(['one', 'two'].map((name) => ({ ...rex, name, status: 'sold' })))
        const names = (await store.pets.list({ limit: 2 })).map(({ name }) => name)
        assert.deepEqual(names, ['two', 'one'])
        assert.deepEqual(await store.pets.countByStatus(), { ...others, sold: sold + 2 })
      })

      it('adds none of many if one of them cannot be stored', async () => {
        const earlier = await store.records.count(kindOf('pets'))
        await assert.rejects(store.pets.createMany([rex, { ...rex, status: 'lost' as 'sold' }, rex]))
        assert.equal(await store.records.count(kindOf('pets')), earlier)
      })

      it('gives each of forty creates at the same time the id of its own animal', async () => {
        const made = await Promise.all(
          Array.from({ length: 40 }, (_, index) => store.pets.create({ ...rex, name: `${index}` })),
        )
        for (const [index, created] of made.entries()) {
          assert.ok(created.outcome === 'created')
          assert.equal((await store.pets.get(created.pet.id))?.name, `${index}`)
        }
      })

      it('gives each of many creates at the same time its own animal, and one that fails, fails alone', async () => {
        const one = fc.record({
          name: fc.string({ minLength: 1 }),
          categoryId: fc.bigInt({ min: INT64_MIN, max: INT64_MAX }),
          good: fc.boolean(),
        })
        await fc.assert(
          fc.asyncProperty(fc.array(one, { minLength: 1, maxLength: 40 }), async (wanted) => {
            const name = (index: number) => `${index} ${wanted[index]!.name.replaceAll('\0', '')}`
            const made = await Promise.allSettled(
              wanted.map(({ categoryId, good }, index) =>
                store.pets.create({
                  name: name(index),
                  categoryId,
                  status: good ? 'sold' : (undefined as unknown as 'sold'),
                }),
              ),
            )
            assert.deepEqual(
              made.map(({ status }) => status === 'fulfilled'),
              wanted.map(({ good }) => good),
            )
            for (const [index, result] of made.entries()) {
              if (result.status === 'rejected') continue
              assert.ok(result.value.outcome === 'created')
              const pet = {
                id: result.value.pet.id,
                name: name(index),
                categoryId: wanted[index]!.categoryId,
                status: 'sold',
              }
              assert.deepEqual(result.value.pet, pet)
              assert.deepEqual({ ...(await store.pets.get(pet.id)) }, pet)
            }
          }),
          { numRuns: 25 },
        )
      })

      it('changes the animal that is meant, once, and no other that equals it', async () => {
        const [one, twin] = [await addPet(rex), await addPet(rex)]
        const changed = event('acct_change', 'pet.changed')
        const change = (id: bigint) => store.pets.update(id, rex, { ...rex, name: 'Max' }, changed)
        assert.deepEqual(await change(one.id), { outcome: 'updated' })
        assert.deepEqual(await change(INT64_MAX), { outcome: 'missing' })
        assert.deepEqual([await store.pets.get(one.id), await store.pets.get(twin.id)], [{ ...one, name: 'Max' }, twin])
        const said = { ...aboutPet(one), data: { from: { name: 'Rex' }, to: { name: 'Max' } } }
        assert.deepEqual(await store.accounts.auditTrail('acct_change', 9), [{ ...changed, ...said }])
      })

      it('takes every status of the interface, lists by it and counts it', async () => {
        for (const status of PET_STATUSES) {
          const counts = await store.pets.countByStatus()
          const { id } = await addPet({ ...rex, status })
          assert.equal((await store.pets.list({ limit: 1, status }))[0]?.id, id)
          assert.deepEqual(await store.pets.countByStatus(), { ...counts, [status]: counts[status] + 1 })
        }
      })

      it('keeps everything when it is closed and opened again, and gives no id twice', async () => {
        const kept = await addPet({ ...rex, name: 'kept' })
        await store.close()
        store = await open()
        assert.deepEqual({ ...(await store.pets.get(kept.id)) }, kept)
        assert.ok((await addPet(rex)).id > kept.id)
      })

      it('tells another version after a write of its own and of another connection, or tells none at all', async () => {
        const other = await open()
        try {
          const first = store.version()
          if (first === undefined) return
          await addPet(rex)
          await turn()
          const second = store.version()
          assert.notEqual(second, first)
          await other.pets.create(rex)
          await turn()
          assert.notEqual(store.version(), second)
        } finally {
          await other.close()
        }
      })
    })

    describe('a create that is repeated', () => {
      const idempotency = (key: string, change: Partial<Idempotency> = {}) => once('acct_once', key, change)

      before(() => addAccount(store, 'acct_once'))

      it('finds the first animal and adds no other', async () => {
        const first = await addPet(rex, idempotency('a'))
        assert.deepEqual(await store.pets.create(rex, idempotency('a')), { outcome: 'replayed', pet: first })
        assert.equal((await store.pets.list({ limit: 1 }))[0]?.id, first.id)
      })

      it('refuses the key for another animal', async () => {
        await addPet(rex, idempotency('b'))
        const other = idempotency('b', { fingerprint: Buffer.alloc(32, 2) })
        assert.deepEqual(await store.pets.create(rex, other), { outcome: 'mismatch' })
      })

      it('keeps the keys of accounts apart', async () => {
        await addAccount(store, 'acct_other')
        const first = await addPet(rex, idempotency('c'))
        const second = await addPet(rex, idempotency('c', { accountId: 'acct_other' }))
        assert.notEqual(first.id, second.id)
        for (const [accountId, pet] of [
          ['acct_once', first],
          ['acct_other', second],
        ] as const)
          assert.deepEqual(await store.pets.create(rex, idempotency('c', { accountId })), { outcome: 'replayed', pet })
      })

      it('still takes a create of an account that was removed meanwhile', async () => {
        const { id } = await addPet(rex, idempotency('f', { accountId: 'acct_removed_meanwhile' }))
        assert.ok(await store.pets.get(id))
      })

      it('makes one animal of many creates at the same time', async () => {
        const results = await Promise.all(Array.from({ length: 20 }, () => store.pets.create(rex, idempotency('d'))))
        assert.equal(results.filter(({ outcome }) => outcome === 'created').length, 1)
        const ids = results.map((result) => ('pet' in result ? result.pet.id : undefined))
        assert.equal(new Set(ids).size, 1)
      })
    })

    describe('accounts', () => {
      it('finds an account by its email address, without case', async () => {
        const made = account('acct_case', 'Someone@Example.com')
        assert.equal(await store.accounts.createAccount(made, event(made.id)), true)
        assert.deepEqual({ ...(await store.accounts.accountByEmail('SOMEONE@example.COM')) }, made)
        assert.deepEqual({ ...(await store.accounts.accountById(made.id)) }, made)
        assert.equal(await store.accounts.accountByEmail('nobody@example.com'), undefined)
      })

      it('ignores the case of letters beyond ASCII in an email address', async () => {
        const made = account('acct_letters', 'Jörg.Ñandú@Example.com')
        assert.equal(await store.accounts.createAccount(made, event(made.id)), true)
        assert.deepEqual({ ...(await store.accounts.accountByEmail('JÖRG.ÑANDÚ@example.com')) }, made)
        const second = account('acct_letters_too', 'jörg.ñandú@example.com')
        assert.equal(await store.accounts.createAccount(second, event(second.id)), false)
      })

      it('takes an email address once, and leaves no event of the second try', async () => {
        await store.accounts.createAccount(account('acct_one', 'taken@example.com'), event('acct_one'))
        const second = account('acct_two', 'TAKEN@example.com')
        assert.equal(await store.accounts.createAccount(second, event('acct_two')), false)
        assert.deepEqual(await store.accounts.auditTrail('acct_two', 10), [])
      })

      it('changes a password, and tells of an account that is not there', async () => {
        const made = await addAccount(store, 'acct_password')
        assert.equal(await store.accounts.setPassword(made.id, 'new', event(made.id)), true)
        assert.equal((await store.accounts.accountById(made.id))?.passwordHash, 'new')
        assert.equal(await store.accounts.setPassword('acct_none', 'new', event('acct_none')), false)
      })

      it('removes an account with its keys, usage, failed requests and sessions, and keeps its trail', async () => {
        const { accounts } = store
        const made = await addAccount(store, 'acct_removed')
        await addKey(store, 'key_removed', made.id, 7)
        const count = { keyId: 'key_removed', hour: 0, operation: 'getPet', status: 200, calls: 1 }
        await accounts.recordUsage([count], new Map())
        await accounts.recordFailures([failedRequest(made.id, { keyId: 'key_removed' })])
        await accounts.createSession(session(7, made.id), 'hash', event(made.id))
        assert.equal(await accounts.removeAccount(made.id, event(made.id, 'account.removed')), true)
        for (const kind of KINDS.filter(({ name }) => name !== 'audit_events')) {
          const left = (await store.records.read(kind, undefined, 10_000)).filter((row) =>
            ['acct_removed', 'key_removed'].some((id) => Object.values(row).includes(id)),
          )
          assert.deepEqual(left, [], kind.name)
        }
        assert.equal(await accounts.sessionByHash(Buffer.alloc(32, 7)), undefined)
        assert.equal((await accounts.auditTrail(made.id, 10)).length, 4)
        assert.equal(await accounts.removeAccount(made.id, event(made.id)), false)
      })
    })

    describe('keys', () => {
      const owner = account('acct_keys')
      before(() => addAccount(store, owner.id))

      it('finds a key by its hash and by its id, as it was made', async () => {
        const key = { ...apiKey('key_found', owner.id), expiresAt: 123 }
        await store.accounts.createKey({ ...key, hash: Buffer.alloc(32, 1) }, event(owner.id))
        assert.deepEqual({ ...(await store.accounts.keyByHash(Buffer.alloc(32, 1))) }, key)
        assert.deepEqual({ ...(await store.accounts.keyById('key_found')) }, key)
        assert.equal(await store.accounts.keyByHash(Buffer.alloc(32, 99)), undefined)
        assert.equal(await store.accounts.keyById('key_none'), undefined)
      })

      it('makes a key of one id once', async () => {
        assert.equal(await addKey(store, 'key_double', owner.id, 20), 'created')
        assert.equal(await addKey(store, 'key_double', owner.id, 21), 'exists')
        await addAccount(store, 'acct_same_key')
        assert.equal(await addKey(store, 'key_double', 'acct_same_key', 22), 'exists', 'by another account')
        for (const byte of [21, 22]) assert.equal(await store.accounts.keyByHash(Buffer.alloc(32, byte)), undefined)
      })

      it('makes no key for an account that is gone, and leaves no event of the try', async () => {
        assert.equal(await addKey(store, 'key_of_nobody', 'acct_none', 23), 'no account')
        assert.equal(await store.accounts.keyById('key_of_nobody'), undefined)
        assert.deepEqual(await store.accounts.auditTrail('acct_none', 10), [])
      })

      it('lists keys newest first, of one account or of all', async () => {
        const older = { ...apiKey('key_older', owner.id), createdAt: 5 }
        const newer = { ...apiKey('key_newer', owner.id), createdAt: 6_000_000_000_000 }
        await store.accounts.createKey({ ...older, hash: Buffer.alloc(32, 2) }, event(owner.id))
        await store.accounts.createKey({ ...newer, hash: Buffer.alloc(32, 3) }, event(owner.id))
        const other = { ...apiKey('key_of_another', 'acct_other_keys'), createdAt: 6 }
        await addAccount(store, 'acct_other_keys')
        await store.accounts.createKey({ ...other, hash: Buffer.alloc(32, 30) }, event('acct_other_keys'))
        await store.accounts.revokeKey('key_older', 7, event(owner.id, 'key.revoked'))
        const all = await store.accounts.listKeys()
        const ids = all.map(({ id }) => id)
        assert.equal(ids[0], 'key_newer')
        assert.deepEqual(ids.slice(-2), ['key_of_another', 'key_older'])
        assert.equal(ids.length, await store.records.count(kindOf('api_keys')))
        assert.deepEqual(
          await store.accounts.listKeys(owner.id),
          all.filter(({ accountId }) => accountId === owner.id),
        )
        assert.deepEqual(await store.accounts.listKeys('acct_other_keys'), [other])
      })

      it('revokes a key once', async () => {
        await addKey(store, 'key_gone', owner.id, 4)
        assert.equal(await store.accounts.revokeKey('key_gone', 77, event(owner.id, 'key.revoked')), true)
        assert.equal(await store.accounts.revokeKey('key_gone', 78, event(owner.id, 'key.revoked')), false)
        assert.equal((await store.accounts.keyById('key_gone'))?.revokedAt, 77)
      })

      it('renames the key that is meant, with an event, and tells of one that is not there, or has another name by now', async () => {
        const { accounts } = store
        await addKey(store, 'key_renamed', owner.id, 50)
        await addKey(store, 'key_kept', owner.id, 51)
        assert.equal(
          await accounts.renameKey(apiKey('key_renamed', owner.id), 'new', event(owner.id, 'key.renamed')),
          true,
        )
        assert.deepEqual(await accounts.keyById('key_renamed'), { ...apiKey('key_renamed', owner.id), name: 'new' })
        assert.deepEqual(await accounts.keyById('key_kept'), apiKey('key_kept', owner.id))
        for (const id of ['key_none', 'key_renamed'])
          assert.equal(await accounts.renameKey(apiKey(id, owner.id), 'other', event(owner.id, 'key.renamed')), false)
        const trail = await accounts.auditTrail(owner.id, 100)
        assert.equal(trail.filter(({ action }) => action === 'key.renamed').length, 1)
      })

      it('adds up usage, moves the last use forward only, and drops counts of unknown keys', async () => {
        await addKey(store, 'key_used', owner.id, 5)
        const count = { keyId: 'key_used', hour: 7_200_000, operation: 'getPet', status: 200, calls: 2 }
        await store.accounts.recordUsage([count, { ...count, keyId: 'key_none' }], new Map([['key_used', 900]]))
        await store.accounts.recordUsage([{ ...count, calls: 3 }], new Map([['key_used', 800]]))
        const usage = (await store.accounts.usageSince(owner.id, 0)).map((row) => ({ ...row }))
        assert.deepEqual(usage, [{ hour: 7_200_000, operation: 'getPet', status: 200, calls: 5 }])
        assert.equal((await store.accounts.keyById('key_used'))?.lastUsedAt, 900)
        await store.accounts.purgeUsage(7_200_001)
        assert.deepEqual(await store.accounts.usageSince(owner.id, 0), [])
      })

      it('moves the last use of each of several keys', async () => {
        const { accounts } = store
        const ids = ['key_used_first', 'key_used_second', 'key_used_third']
        for (const [index, id] of ids.entries()) await addKey(store, id, owner.id, 60 + index)
        const lastUsed = async () =>
          (await Promise.all(ids.map((id) => accounts.keyById(id)))).map((key) => key?.lastUsedAt)
        await accounts.recordUsage([], new Map([...ids, 'key_none'].map((id) => [id, 500])))
        assert.deepEqual(await lastUsed(), [500, 500, 500])
        await accounts.recordUsage([], new Map(ids.map((id, index) => [id, 499 + index])))
        assert.deepEqual(await lastUsed(), [500, 500, 501])
      })
    })

    it('keeps the newest failed requests of each account, and drops those of accounts that are gone', async () => {
      const failed = (at: number, accountId: string) =>
        failedRequest(accountId, { at, requestId: `r${at}`, message: 'name is missing 🐈' })
      for (const id of ['acct_few_failures', 'acct_failures', 'acct_failures_too']) await addAccount(store, id)
      await store.accounts.recordFailures([failed(1, 'acct_few_failures')])
      const times = Array.from({ length: FAILED_REQUESTS_KEPT + 5 }, (_, at) => at)
      const all = times.flatMap((at) => ['acct_failures', 'acct_failures_too'].map((id) => failed(at, id)))
      await store.accounts.recordFailures([...all, failed(1, 'acct_none')])
      assert.equal((await store.accounts.failedRequests('acct_few_failures', 10)).length, 1, 'those of others stay')
      for (const id of ['acct_failures', 'acct_failures_too']) {
        const kept = await store.accounts.failedRequests(id, 1000)
        assert.deepEqual(
          kept.map((request) => ({ ...request })),
          times
            .slice(5)
            .toReversed()
            .map((at) => failed(at, id)),
        )
      }
      assert.equal((await store.accounts.failedRequests('acct_failures', 3)).length, 3)
      assert.deepEqual(await store.accounts.failedRequests('acct_none', 3), [])
    })

    describe('sessions', () => {
      const owner = account('acct_sessions')
      before(() => addAccount(store, owner.id))
      const own = (byte: number) => session(byte, owner.id)
      const start = (made: Session) => store.accounts.createSession(made, 'hash', event(owner.id, 'session.started'))

      it('finds a session by the hash of its token, and moves its last use on', async () => {
        await start(own(1))
        assert.deepEqual(await store.accounts.sessionByHash(Buffer.alloc(32, 1)), own(1))
        await store.accounts.touchSession(Buffer.alloc(32, 1), 200)
        assert.equal((await store.accounts.sessionByHash(Buffer.alloc(32, 1)))?.lastSeenAt, 200)
        assert.equal(await store.accounts.sessionByHash(Buffer.alloc(32, 99)), undefined)
      })

      it('ends a session once', async () => {
        for (const byte of [2, 3]) await start(own(byte))
        const end = () => store.accounts.endSession(Buffer.alloc(32, 2), event(owner.id, 'session.ended'))
        assert.deepEqual([await end(), await end()], [true, false])
        assert.ok(await store.accounts.sessionByHash(Buffer.alloc(32, 3)))
      })

      it('starts none with a password that is no longer the account’s, and ends all when it is changed', async () => {
        const { accounts } = store
        const made = await addAccount(store, 'acct_old_password')
        const tryWith = (byte: number, passwordHash: string) =>
          accounts.createSession(session(byte, made.id), passwordHash, event(made.id, 'session.started'))
        assert.equal(await tryWith(40, made.passwordHash), true)
        assert.equal(await accounts.setPassword(made.id, 'new', event(made.id), 'not the present one'), false)
        assert.ok(await accounts.sessionByHash(Buffer.alloc(32, 40)), 'a change that was not made ends no session')
        assert.equal(await accounts.setPassword(made.id, 'new', event(made.id), made.passwordHash), true)
        assert.equal(await accounts.sessionByHash(Buffer.alloc(32, 40)), undefined)
        const trail = await accounts.auditTrail(made.id, 100)
        assert.equal(await tryWith(41, made.passwordHash), false)
        assert.equal(await accounts.sessionByHash(Buffer.alloc(32, 41)), undefined)
        assert.deepEqual(await accounts.auditTrail(made.id, 100), trail)
        assert.equal(await tryWith(42, 'new'), true)
      })
    })

    it('appends an event that stands alone, with or without a detail', async () => {
      const events = [event('acct_alone', 'session.refused'), { ...event('acct_alone'), detail: 'sold → available' }]
      for (const entry of events) await store.accounts.appendEvent(entry)
      assert.deepEqual(await store.accounts.auditTrail('acct_alone', 9), events.toReversed())
    })

    it('tells the changes of one animal by any account, newest first, whatever its names were', async () => {
      const changed = (id: bigint, name: string, at: number, accountId = 'acct_changes'): AuditEvent => ({
        ...event(accountId, 'pet.changed'),
        at,
        ...aboutPet({ ...rex, id, name }),
        detail: `${at}`,
      })
      const own = [changed(42n, 'Rex', 2), changed(42n, 'Rex (4)', 1, 'acct_changes_too'), changed(42n, '7-1', 3)]
      const others = [changed(4n, 'Rex (42)', 4), changed(2n, '4', 5), changed(-42n, 'Rex', 6), changed(142n, '', 7)]
      const key: AuditEvent = { ...changed(42n, 'Rex', 8), action: 'key.renamed' }
      for (const entry of [own[0]!, others[0]!, own[1]!, ...others.slice(1), key, own[2]!])
        await store.accounts.appendEvent(entry)
      assert.deepEqual(await store.accounts.changesOf(42n, 9), own.toReversed())
      assert.deepEqual(await store.accounts.changesOf(42n, 2), own.toReversed().slice(0, 2))
      assert.deepEqual(await store.accounts.changesOf(-42n, 9), [others[2]])
    })

    it('tells an account its events, newest first', async () => {
      const made = await addAccount(store, 'acct_trail')
      await store.accounts.setPassword(made.id, 'x', event(made.id, 'account.password_changed'))
      const trail = await store.accounts.auditTrail(made.id, 10)
      assert.deepEqual(
        trail.map((entry) => ({ ...entry })),
        [event(made.id, 'account.password_changed'), event(made.id)],
      )
      assert.equal((await store.accounts.auditTrail(made.id, 1)).length, 1)
    })

    describe('the security log', () => {
      let at = 1_790_000_000_000
      const append = async (accountId: string, ...actions: string[]) => {
        for (const action of actions) {
          at += 1
          await store.accounts.appendEvent({ ...event(accountId, action as AuditEvent['action']), at })
        }
      }
      const log = async (...query: Parameters<Store['accounts']['securityLog']>) => {
        const { lines, next } = await store.accounts.securityLog(...query)
        return { lines: lines.map(({ action, count }) => (count === 1 ? action : `${count} ${action}`)), next }
      }

      it('folds what a stranger or a thief can cause, each action by itself, and no event of animals or categories takes a place', async () => {
        // One action is a newer program's.
        await append('acct_log', 'account.created', 'session.started', 'key.created', 'later.added')
        for (let nth = 0; nth < 26; nth += 1)
          await append(
            'acct_log',
            'session.refused',
            'session.started',
            'session.refused',
            'pet.changed',
            'session.ended',
          )
        await append('acct_log', 'category.added', 'account.role_changed', 'session.refused', 'category.renamed')
        await append('acct_other', 'session.refused', 'key.created')
        assert.deepEqual(await log('acct_log'), {
          lines: [
            'session.refused',
            'account.role_changed',
            '26 session.ended',
            '52 session.refused',
            '26 session.started',
            'later.added',
            'key.created',
            'session.started',
            'account.created',
          ],
          next: undefined,
        })
        const [, , , refused] = (await store.accounts.securityLog('acct_log')).lines
        const trail = (await store.accounts.auditTrail('acct_log', 200)).filter(
          (each) => each.action === refused!.action,
        )
        assert.deepEqual([refused!.at, refused!.since], [trail[1]!.at, trail.at(-1)!.at])
      })

      it('is paged through without a gap or a repetition while events are added, and counts no more than a thousand', async () => {
        await append('acct_pages', ...Array.from({ length: 20 }, () => ['key.created', 'session.refused']).flat())
        await append('acct_pages', ...Array.from({ length: 21 }, () => 'key.renamed'))
        const first = await log('acct_pages')
        assert.deepEqual(
          first.lines,
          Array.from({ length: 20 }, () => 'key.renamed'),
        )
        const lastId = await store.records.lastId(kindOf('audit_events'))
        const flood = Array.from({ length: FOLDED_MOST + 5 }, (_, nth) => ({
          id: lastId + BigInt(nth + 1),
          at: BigInt(at),
          account_id: 'acct_pages',
          action: 'session.refused',
          via: 'console',
          subject: 'someone',
          detail: null,
          pet_id: null,
          data: null,
          batch_id: null,
        }))
        await store.records.write(kindOf('audit_events'), flood)
        await store.records.raiseLastId(kindOf('audit_events'), flood.at(-1)!.id)
        const second = await log('acct_pages', first.next)
        const pairs = Array.from({ length: 20 }, () => ['session.refused', 'key.created']).flat()
        assert.deepEqual(second.lines, ['key.renamed', ...pairs.slice(0, 38)])
        assert.deepEqual(await log('acct_pages', second.next), { lines: pairs.slice(38), next: undefined })
        assert.equal((await log('acct_pages')).lines[0], `${FOLDED_MOST} session.refused`)
      })
    })

    it('records its environment once, whoever comes first, and changes it only for who knows what it is', async () => {
      assert.equal(await store.environment(), undefined)
      const other = await open()
      try {
        const both = await Promise.all([store.recordEnvironment('staging'), other.recordEnvironment('production')])
        assert.equal(new Set(both).size, 1, 'both are told the same')
        const recorded = both[0]
        const another = recorded === 'staging' ? 'production' : 'staging'
        assert.equal(await other.environment(), recorded)
        assert.equal(await store.recordEnvironment(another), recorded)
        assert.equal(await store.recordEnvironment(another, { instead: another }), recorded)
        assert.equal(await other.environment(), recorded)
        assert.equal(await store.recordEnvironment(another, { instead: recorded }), another)
        assert.equal(await other.environment(), another)
      } finally {
        await other.close()
      }
    })

    it('answers when asked whether it is there', () => store.ping())
  })
}

/** The version is asked once a turn of the event loop. */
function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(() => setImmediate(resolve))
  })
}

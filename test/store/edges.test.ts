// What every engine promises at the edges: the exact hour, the record just old enough, changes that change nothing, the end.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { readConfig } from '../../src/config.ts'
import type { NewPet } from '../../src/contract/pets.ts'
import { openStore } from '../../src/store/opening/open-store.ts'
import { kindOf, KINDS, type StoredRecord } from '../../src/store/records.ts'
import { type Store, StoreUnavailable } from '../../src/store/store.ts'
import { ENGINES, sqlite, type TestDatabase } from '../harness/databases/engines.ts'
import { askDatabase } from '../harness/databases/database-schema.ts'
import { account, addAccount, addKey, apiKey, event, idempotency, session } from '../harness/databases/sample-rows.ts'

const HOUR = 3_600_000
const rex: NewPet = { name: 'Rex', categoryId: 3n, status: 'available' }

for (const engine of ENGINES) {
  describe(`at the edges, the store on ${engine.name}`, { concurrency: false }, () => {
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

    /** An account with one key, `key_NAME`. */
    async function makeAccount(name: string, byte: number) {
      const made = await addAccount(store, `acct_${name}`)
      await addKey(store, `key_${name}`, made.id, byte)
      return made
    }

    it('counts usage from the very hour that is asked for, of that account alone, and keeps it when earlier hours are purged', async () => {
      const { accounts } = store
      const [mine, other] = [await makeAccount('usage', 1), await makeAccount('usage_other', 2)]
      const count = (hour: number) => ({ hour, operation: 'getPet', status: 200, calls: 1 })
      const counts = [count(HOUR), count(2 * HOUR)]
      await accounts.recordUsage(
        counts.map((row) => ({ ...row, keyId: 'key_usage' })),
        new Map(),
      )
      await accounts.recordUsage([{ ...count(2 * HOUR), keyId: 'key_usage_other' }], new Map())
      const since = async (hour: number, { id } = mine) =>
        (await accounts.usageSince(id, hour)).map((row) => ({ ...row }))
      assert.deepEqual(await since(HOUR), counts)
      assert.deepEqual(await since(2 * HOUR), [counts[1]])
      assert.deepEqual(await since(2 * HOUR + 1), [])
      assert.deepEqual(await since(0, other), [count(2 * HOUR)])
      await accounts.purgeUsage(2 * HOUR)
      assert.deepEqual(await since(0), [counts[1]])
    })

    it('counts calls apart by operation, status and hour, and adds up the others', async () => {
      const { id } = await makeAccount('apart', 3)
      const count = { keyId: 'key_apart', hour: HOUR, operation: 'getPet', status: 200, calls: 1 }
      const counts = [
        count,
        { ...count, status: 404 },
        { ...count, operation: 'listPets' },
        { ...count, hour: 2 * HOUR },
      ]
      await store.accounts.recordUsage([...counts, ...counts], new Map())
      await store.accounts.recordUsage(counts, new Map())
      assert.deepEqual(
        (await store.accounts.usageSince(id, 0)).map((row) => ({ ...row })),
        counts.map(({ keyId: _key, ...row }) => ({ ...row, calls: 3 })),
      )
    })

    it('replays a create whose record is exactly as old as it may be, and purges only what is older than asked', async () => {
      const validSince = (time: number) => idempotency('acct_once', 'k', { now: 5 * HOUR, validSince: time })
      const first = await store.pets.create(rex, validSince(0))
      assert.ok(first.outcome === 'created')
      assert.equal(await store.pets.purgeIdempotencyRecords(5 * HOUR), 0)
      assert.deepEqual(await store.pets.create(rex, validSince(5 * HOUR)), { outcome: 'replayed', pet: first.pet })
      assert.equal(await store.pets.purgeIdempotencyRecords(5 * HOUR + 1), 1)
      assert.equal((await store.pets.create(rex, validSince(0))).outcome, 'created')
    })

    it('lets a key whose time is over stand for another animal, from then on', async () => {
      const used = (byte: number, hours: number) =>
        idempotency('acct_reuse', 'k', {
          fingerprint: Buffer.alloc(32, byte),
          now: hours * HOUR,
          validSince: (hours - 24) * HOUR,
        })
      await store.pets.create(rex, used(1, 1))
      const second = await store.pets.create({ ...rex, name: 'Tom' }, used(2, 30))
      assert.ok(second.outcome === 'created')
      assert.deepEqual(await store.pets.create({ ...rex, name: 'Tom' }, used(2, 50)), {
        outcome: 'replayed',
        pet: second.pet,
      })
      assert.deepEqual(await store.pets.create(rex, used(1, 50)), { outcome: 'mismatch' })
    })

    it('leaves no event of a change that changed nothing', async () => {
      const { accounts } = store
      const made = await makeAccount('unchanged', 4)
      const { tokenHash } = session(4, made.id)
      await accounts.createSession(session(4, made.id), 'hash', event(made.id, 'session.started'))
      await accounts.endSession(tokenHash, event(made.id, 'session.ended'))
      await accounts.revokeKey('key_unchanged', 1, event(made.id, 'key.revoked'))
      const trail = await accounts.auditTrail(made.id, 100)
      assert.equal(trail.length, 5)
      await accounts.endSession(tokenHash, event(made.id, 'session.ended'))
      await accounts.revokeKey('key_unchanged', 2, event(made.id, 'key.revoked'))
      await addKey(store, 'key_unchanged', made.id, 5)
      await accounts.setPassword('acct_none', 'new', event(made.id, 'account.password_changed'))
      await accounts.removeAccount('acct_none', event(made.id, 'account.removed'))
      assert.deepEqual(await accounts.auditTrail(made.id, 100), trail)
    })

    it('changes nothing without its event: both are stored, or neither is', async () => {
      const { accounts, pets, records } = store
      const { id } = await makeAccount('evented', 9)
      await accounts.createSession(session(9, id), 'hash', event(id, 'session.started'))
      const created = await pets.create(rex)
      assert.ok(created.outcome === 'created')
      const everything = () =>
        Promise.all([
          ...KINDS.map((kind) => records.read(kind, undefined, 1000)),
          ...[9, 10].map((byte) => accounts.sessionByHash(Buffer.alloc(32, byte))),
        ])
      const unchanged = await everything()
      // Both engines refuse an event without this.
      const refused = { ...event(id), via: null as unknown as string }
      const changes: Record<string, () => Promise<unknown>> = {
        createAccount: () => accounts.createAccount(account('acct_unevented'), refused),
        setPassword: () => accounts.setPassword(id, 'new', refused),
        removeAccount: () => accounts.removeAccount(id, refused),
        createKey: () => accounts.createKey({ ...apiKey('key_unevented', id), hash: Buffer.alloc(32, 10) }, refused),
        revokeKey: () => accounts.revokeKey('key_evented', 5, refused),
        renameKey: () => accounts.renameKey(apiKey('key_evented', ''), 'new', refused),
        createSession: () => accounts.createSession(session(10, id), 'hash', refused),
        endSession: () => accounts.endSession(session(9, id).tokenHash, refused),
        update: () => pets.update(created.pet.id, rex, { ...rex, status: 'sold' }, refused),
      }
      for (const [name, change] of Object.entries(changes)) {
        await assert.rejects(change(), name)
        assert.deepEqual(await everything(), unchanged, name)
      }
    })

    it('moves and ends the sessions that are meant, and no others', async () => {
      const { accounts } = store
      const [mine, other] = [await makeAccount('sessions', 6), await makeAccount('sessions_other', 7)]
      const sessions = [
        session(1, mine.id, { createdAt: 100, lastSeenAt: 100 }),
        session(2, mine.id, { createdAt: 100, lastSeenAt: 300 }),
        session(3, mine.id, { createdAt: 200, lastSeenAt: 200 }),
        session(4, other.id, { createdAt: 200, lastSeenAt: 200 }),
      ]
      for (const made of sessions) await accounts.createSession(made, 'hash', event(made.accountId, 'session.started'))
      const left = async () =>
        (await Promise.all(sessions.map(({ tokenHash }) => accounts.sessionByHash(tokenHash)))).map(
          (found) => found?.lastSeenAt,
        )
      await accounts.touchSession(sessions[2]!.tokenHash, 250)
      assert.deepEqual(await left(), [100, 300, 250, 200])
      await accounts.purgeSessions(100, 200, 300)
      assert.deepEqual(await left(), [undefined, 300, 250, 200], 'idle for too long')
      await accounts.purgeSessions(200, 200, 300)
      assert.deepEqual(await left(), [undefined, undefined, 250, 200], 'too old, though in use')
      await accounts.purgeSessions(200, 200, 249)
      assert.deepEqual(await left(), [undefined, undefined, undefined, 200], 'from the future')
      await accounts.createSession(sessions[0]!, 'hash', event(mine.id, 'session.started'))
      await accounts.setPassword(mine.id, 'new', event(mine.id, 'account.password_changed'))
      assert.deepEqual(await left(), [undefined, undefined, undefined, 200])
    })

    it('lets nobody change or remove what is in the audit trail', async () => {
      const trail = kindOf('audit_events')
      await store.accounts.appendEvent(event('acct_trail'))
      const entries = await store.records.read(trail, undefined, 1000)
      const statements = ["UPDATE audit_events SET subject = 'another'", 'DELETE FROM audit_events']
      for (const statement of engine !== sqlite ? [...statements, 'TRUNCATE audit_events'] : statements)
        await assert.rejects(askDatabase(database.url, statement), /the audit trail is append-only/, statement)
      assert.deepEqual(await store.records.read(trail, undefined, 1000), entries)
    })

    it('lists accounts oldest first, those of one moment by their ids', async () => {
      await store.accounts.createAccount(
        { ...account('acct_newest'), createdAt: 1_790_000_000_001 },
        event('acct_newest'),
      )
      await store.accounts.createAccount({ ...account('acct_oldest'), createdAt: 1 }, event('acct_oldest'))
      const ids = (await store.accounts.listAccounts()).map(({ id }) => id)
      assert.deepEqual([ids[0], ids.at(-1)], ['acct_oldest', 'acct_newest'])
      const letters = [...'hgfedcba']
      for (const id of letters.map((letter) => `acct_moment_${letter}`))
        await store.accounts.createAccount({ ...account(id), createdAt: 2 }, event(id))
      const sameMoment = (await store.accounts.listAccounts()).slice(1, 1 + letters.length)
      assert.equal(sameMoment.map(({ id }) => id.at(-1)).join(''), 'abcdefgh')
    })

    it('lists keys of one moment by their ids', async () => {
      const { id } = await addAccount(store, 'acct_moment_keys')
      for (const [index, letter] of [...'cabd'].entries()) await addKey(store, `key_moment_${letter}`, id, 100 + index)
      const keys = await store.accounts.listKeys(id)
      assert.equal(keys.map((key) => key.id.at(-1)).join(''), 'abcd')
    })

    it('reads the records of each kind a page at a time, none twice and none left out', async () => {
      const { id } = await makeAccount('paged', 8)
      const count = { keyId: 'key_paged', hour: HOUR, operation: 'listPets', status: 200, calls: 1 }
      const counts = [
        count,
        { ...count, status: 400 },
        { ...count, operation: 'getPet', status: 404 },
        { ...count, hour: 2 * HOUR, operation: 'createPet', status: 201 },
      ]
      await store.accounts.recordUsage(counts, new Map())
      for (const each of [idempotency(id, 'a'), idempotency(id, 'b'), idempotency('acct_paged_before', 'c')])
        await store.pets.create(rex, each)
      for (const kind of KINDS) {
        const pages: StoredRecord[] = []
        for (let last: StoredRecord | undefined; ;) {
          const [record] = await store.records.read(kind, last, 1)
          if (record === undefined) break
          pages.push(record)
          last = record
        }
        assert.equal(pages.length, await store.records.count(kind), kind.name)
        assert.deepEqual(pages, await store.records.read(kind, undefined, 1000), kind.name)
      }
    })

    it('gives the id of an animal that was removed by hand to no other, and counts it no more', async () => {
      const removed = await store.pets.create(rex)
      assert.ok(removed.outcome === 'created')
      const pets = kindOf('pets')
      await askDatabase(database.url, 'DELETE FROM pets')
      assert.deepEqual(await store.pets.countByStatus(), { available: 0, pending: 0, sold: 0 })
      await store.records.raiseLastId(pets, 1n)
      assert.equal(await store.records.lastId(pets), removed.pet.id, 'it is never lowered')
      const next = await store.pets.create(rex)
      assert.ok(next.outcome === 'created' && next.pet.id > removed.pet.id)
    })

    it('assigns ids above 2⁵³ and finds them to the last digit, and takes every kind of write beside them', async () => {
      await using large = await engine.newDatabase()
      const other = await openStore(readConfig({ database: large.url }, {}).database)
      try {
        await other.records.raiseLastId(kindOf('pets'), 2n ** 60n)
        const once = idempotency('acct', 'k', { now: 1 })
        const first = await other.pets.create(rex)
        const second = await other.pets.create({ ...rex, name: 'Tom' }, once)
        assert.ok(first.outcome === 'created' && second.outcome === 'created')
        assert.deepEqual([first.pet.id, second.pet.id], [2n ** 60n + 1n, 2n ** 60n + 2n])
        const replayed = await other.pets.create({ ...rex, name: 'Tom' }, once)
        assert.deepEqual(replayed, { outcome: 'replayed', pet: second.pet })
        assert.deepEqual(await other.pets.list({ limit: 9 }), [second.pet, first.pet])
        assert.equal(await other.pets.purgeIdempotencyRecords(2), 1)
        const file = { hash: 'h', file: '/srv/pets.csv', rowsTotal: 2 }
        assert.equal(await other.imports.begin(file, 1, false), true)
        for (const rowsDone of [0, 1])
          assert.equal(await other.imports.addRows({ ...file, rowsDone }, [rex], 2), true, `row ${rowsDone}`)
        assert.equal((await other.pets.list({ limit: 9, after: second.pet.id })).length, 2)
        await addAccount(other, 'acct_large')
        await other.pets.create(rex)
        assert.equal(await other.accounts.setPassword('acct_large', 'new', event('acct_large')), true)
      } finally {
        await other.close()
      }
    })

    it('settles every write that waits when it is closed, and has stored what it acknowledged', async () => {
      const earlier = await store.records.count(kindOf('pets'))
      const closed = await open()
      const write = () => Array.from({ length: 100 }, () => closed.pets.create(rex))
      const first = write()
      for (const one of first) one.catch(() => {})
      await setImmediate()
      const writes = [...first, ...write()]
      const settling = Promise.allSettled(writes)
      await closed.close()
      const settled = await Promise.race([settling, setTimeout(10_000, [], { ref: false })])
      assert.equal(settled.length, writes.length)
      const refused = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []))
      const stored = (await store.records.count(kindOf('pets'))) - earlier
      assert.ok(refused.every((reason) => reason instanceof StoreUnavailable))
      assert.ok(stored >= writes.length - refused.length)
      // The writes of a file need no connection that a close takes away.
      if (engine.name === 'SQLite') assert.equal(stored, writes.length)
    })

    it('says that it is closed, whatever it is asked then', async () => {
      const closed = await open()
      const version = closed.version()
      await closed.close()
      const calls = [
        () => closed.pets.get(1n),
        () => closed.pets.list({ limit: 1 }),
        () => closed.pets.create(rex),
        () => closed.accounts.listKeys(),
        () => closed.ping(),
      ]
      for (const call of calls) await assert.rejects(call, StoreUnavailable)
      // Whether animals have changed is unknown from now on, so no cached page may be served.
      if (version !== undefined) assert.equal(new Set([version, closed.version(), closed.version()]).size, 3)
    })

    it('may be closed more than once, even at the same time', async () => {
      const closed = await openStore(readConfig({ database: database.url }, {}).database, {
        serving: { checkpoints: true, onBroken: (error) => assert.fail(error) },
      })
      await Promise.all([closed.close(), closed.close()])
      await closed.close()
    })
  })
}

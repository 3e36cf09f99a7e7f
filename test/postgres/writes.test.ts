// Writes to PostgreSQL: done once, tried again only where the server has said that nothing was done, never in a deadlock.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Sql } from 'postgres'
import { FAILED_REQUESTS_KEPT } from '../../src/store/account-store.ts'
import { parseConnection } from '../../src/store/postgres/pool/connection-settings.ts'
import { gatherCreates, postgresPets } from '../../src/store/postgres/pets.ts'
import { postgresRecords } from '../../src/store/postgres/records.ts'
import { postgresSql } from '../../src/store/postgres/sql.ts'
import { Pool } from '../../src/store/postgres/pool.ts'
import { kindOf } from '../../src/store/records.ts'
import { type Store, StoreUnavailable } from '../../src/store/store.ts'
import { startPetstore } from '../harness/harness.ts'
import { until } from '../harness/until.ts'
import { type OpenPostgres, openPostgres, rex } from '../harness/databases/open-postgres.ts'
import {
  account,
  addAccount,
  addKey,
  apiKey,
  event,
  failedRequest,
  idempotency as idempotencyOf,
  petRow,
  session as sessionOf,
} from '../harness/databases/sample-rows.ts'

const idempotency = (key: string) => idempotencyOf('acct', key)
const session = (byte: number) => sessionOf(byte, 'acct')
const usage = { hour: 0, operation: 'getPet', status: 200, calls: 1 }
const failure = failedRequest('acct')

async function addKeys(store: Store, ids: readonly string[]): Promise<void> {
  await addAccount(store, 'acct')
  for (const [index, id] of ids.entries()) await addKey(store, id, 'acct', index)
}

describe('a write to PostgreSQL whose answer is lost', { concurrency: false }, () => {
  let opened: OpenPostgres
  before(async () => {
    opened = await openPostgres('pool_size=1')
    await addKeys(opened.store, ['key_1', 'key_2'])
  })
  after(() => opened[Symbol.asyncDispose]())

  it('is told as failed, and not repeated: a second try would do it twice, or find that it was done already', async () => {
    const { store, proxy } = opened
    const { accounts, pets, imports, records } = store
    const counts = [{ ...usage, keyId: 'key_1' }]
    const auditEvent = (id: number) => ({
      id: BigInt(id),
      at: 1n,
      account_id: 'acct',
      action: 'session.ended',
      via: 'console',
      subject: 's',
      detail: null,
      pet_id: null,
      data: null,
      batch_id: null,
    })
    const file = (nth: number) => ({ hash: `file ${nth}`, file: '/srv/pets.csv', rowsTotal: 2 })
    const named = (nth: number) => ({ ...rex, name: `Rex ${nth}` })
    const created = await pets.create(named(0))
    assert.ok(created.outcome === 'created')
    const onceOnly: Record<string, (nth: number) => Promise<unknown>> = {
      'a new animal': () => pets.create(rex),
      'many animals': () => pets.createMany([rex, rex]),
      'counts of usage': () => accounts.recordUsage(counts, new Map()),
      'failed requests': () => accounts.recordFailures([failure]),
      'an audit event': () => accounts.appendEvent(event('acct')),
      'a revoked key': (nth) => accounts.revokeKey(`key_${nth}`, nth, event('acct')),
      'copied records': (nth) => records.write(kindOf('audit_events'), [auditEvent(1000 + nth)]),
      'an animal': (nth) => pets.update(created.pet.id, named(nth - 1), named(nth), event('acct')),
      'an account': (nth) => accounts.createAccount(account(`acct_${nth}`), event('acct')),
      'a key': (nth) => addKey(store, `key_new_${nth}`, 'acct', 50 + nth),
      'a removed account': (nth) => accounts.removeAccount(`acct_${nth}`, event('acct')),
      'a session': (nth) => accounts.createSession(session(nth), 'hash', event('acct')),
      'an ended session': (nth) => accounts.endSession(session(nth).tokenHash, event('acct')),
      'a password': (nth) =>
        accounts.setPassword('acct', `hash ${nth}`, event('acct'), nth === 1 ? 'hash' : `hash ${nth - 1}`),
      'a file': (nth) => imports.begin(file(nth), 1, false),
      'rows of a file': (nth) => imports.addRows({ ...file(1), rowsDone: nth - 1 }, [rex], 1),
    }
    for (const [what, write] of Object.entries(onceOnly)) {
      // The first time, a statement is prepared: it takes two round trips.
      await write(1)
      proxy.cutNextAnswer()
      await assert.rejects(write(2), StoreUnavailable, what)
    }
  })

  it('is told as failed where the connection was reset, too', async () => {
    const { pets } = opened.store
    await pets.create(rex)
    const { available } = await pets.countByStatus()
    opened.proxy.cutNextAnswer('reset')
    await assert.rejects(pets.create(rex), StoreUnavailable)
    assert.equal((await pets.countByStatus()).available, available + 1)
  })

  it('is repeated where that does no harm: a create with a key, and changes of sessions and facts', async () => {
    const { store, proxy } = opened
    const { pets, accounts } = store
    const { tokenHash } = session(99)
    const { passwordHash } = (await accounts.accountById('acct'))!
    await accounts.createSession(session(99), passwordHash, event('acct'))
    const { available } = await pets.countByStatus()
    const harmless: ((nth: number) => Promise<unknown>)[] = [
      (nth) => pets.create(rex, idempotency(`k${nth}`)),
      (nth) => accounts.touchSession(tokenHash, nth),
      () => accounts.purgeSessions(0, 0, 10),
      (nth) => store.setUnfinishedCopy(nth === 1),
    ]
    for (const write of harmless) {
      await write(1)
      proxy.cutNextAnswer()
      await write(2)
    }
    assert.equal((await pets.countByStatus()).available, available + 2)
    assert.equal((await accounts.sessionByHash(tokenHash))?.lastSeenAt, 2)
    assert.equal(await store.isUnfinishedCopy(), false)
  })
})

describe('a write for an account that another process is removing', { concurrency: false }, () => {
  let opened: OpenPostgres
  before(async () => void (opened = await openPostgres()))
  after(() => opened[Symbol.asyncDispose]())

  const count = { ...usage, keyId: 'key_1' }
  const writes: Record<string, [(accounts: Store['accounts']) => Promise<unknown>, outcome: unknown]> = {
    'a key': [
      (accounts) => accounts.createKey({ ...apiKey('key_2', 'acct'), hash: Buffer.alloc(32, 9) }, event('acct')),
      'no account',
    ],
    'a name': [(accounts) => accounts.renameKey(apiKey('key_1', 'acct'), 'new', event('acct')), false],
    'a revocation': [(accounts) => accounts.revokeKey('key_1', 1, event('acct')), false],
    'a password': [(accounts) => accounts.setPassword('acct', 'new', event('acct')), false],
    'a session': [(accounts) => accounts.createSession(session(9), 'hash', event('acct')), false],
    'counts of usage': [(accounts) => accounts.recordUsage([count], new Map([['key_1', 1]])), undefined],
    'counts of usage alone': [(accounts) => accounts.recordUsage([count], new Map()), undefined],
    'failed requests': [(accounts) => accounts.recordFailures([failure]), undefined],
  }
  for (const [what, [write, outcome]] of Object.entries(writes)) {
    it(`waits for that, then does nothing: ${what}`, async () => {
      const { accounts } = opened.store
      await addKeys(opened.store, ['key_1'])
      const commit = await opened.lock("DELETE FROM accounts WHERE id = 'acct'")
      const written = write(accounts)
      await Promise.race([written, opened.untilBlocked(1)])
      await commit()
      assert.equal(await written, outcome)
    })
  }
})

/** Makes the first of these changes fail with this code; the sequence `tries` counts them. */
async function failFirst(sql: Sql, change: string, code: string): Promise<void> {
  await sql.unsafe(`
    CREATE SEQUENCE IF NOT EXISTS tries;
    ALTER SEQUENCE tries RESTART;
    CREATE OR REPLACE FUNCTION fail_first() RETURNS TRIGGER LANGUAGE plpgsql AS $$
      BEGIN IF nextval('tries') = 1 THEN RAISE EXCEPTION 'try again' USING ERRCODE = TG_ARGV[0]; END IF;
      RETURN coalesce(new, old); END$$;
    CREATE OR REPLACE TRIGGER fail_first BEFORE ${change} FOR EACH ROW EXECUTE FUNCTION fail_first('${code}')`)
}

describe('a write that PostgreSQL refuses', { concurrency: false }, () => {
  it('is tried again where it was rolled back for the sake of another', async () => {
    await using opened = await openPostgres()
    const { store, sql } = opened
    for (const code of ['40001', '40P01']) {
      for (const key of [undefined, idempotency(code)]) {
        await failFirst(sql, 'INSERT ON pets', code)
        assert.equal((await store.pets.create(rex, key)).outcome, 'created')
        assert.equal((await sql`SELECT last_value::int AS tries FROM tries`)[0]!['tries'], 2)
      }
    }
    assert.equal((await store.pets.countByStatus()).available, 4)
  })

  it('keeps a failed request once, however the removal of older ones fails first', async () => {
    await using opened = await openPostgres()
    const { store, sql } = opened
    await addKeys(store, [])
    await store.accounts.recordFailures(Array.from({ length: FAILED_REQUESTS_KEPT }, () => failure))
    // The first is retried by the pool, the second by who records failures.
    for (const code of ['40001', '57014']) {
      await failFirst(sql, 'DELETE ON failed_requests', code)
      const record = () => store.accounts.recordFailures([{ ...failure, requestId: code }])
      await record().catch(record)
      const kept = await store.accounts.failedRequests('acct', 2 * FAILED_REQUESTS_KEPT)
      assert.deepEqual(
        [kept.length, kept.filter(({ requestId }) => requestId === code).length],
        [FAILED_REQUESTS_KEPT, 1],
        code,
      )
    }
  })

  it('answers 503 where the state of the database is the reason, and 500 where it is the program', async () => {
    await using opened = await openPostgres()
    await opened.sql`CREATE FUNCTION fail() RETURNS TRIGGER LANGUAGE plpgsql AS
      $$BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = new.name; END$$`
    await opened.sql`CREATE TRIGGER fail BEFORE INSERT ON pets FOR EACH ROW WHEN (new.name ~ '^[0-9A-Z]{5}$') EXECUTE FUNCTION fail()`
    await using petstore = await startPetstore({ database: opened.url })
    const answers = { '25006': 503, '40P01': 503, '57014': 503, '23505': 500, XX000: 500 }
    for (const [name, status] of Object.entries(answers)) {
      assert.equal((await petstore.add({ name, categoryId: 3 })).status, status, name)
      assert.equal((await petstore.add({ name: 'Rex', categoryId: 3 })).status, 201, `after ${name}`)
    }
  })
})

describe('writes to the same rows of PostgreSQL', { concurrency: false }, () => {
  it('take them in one order, whatever order they came in, so that two instances never wait for each other', async () => {
    await using opened = await openPostgres('statement_timeout=60000')
    const { store, sql } = opened
    const [first, ...rest] = Array.from({ length: 20 }, (_, index) => `key_${index + 10}`)
    const lastFirst = [first!, ...rest].toReversed()
    await addKeys(store, lastFirst)
    const counts = lastFirst.map((keyId) => ({ ...usage, keyId }))
    await store.accounts.recordUsage(counts, new Map())
    const waits = [
      {
        rows: 'api_keys',
        column: 'id',
        record: () => store.accounts.recordUsage(counts, new Map(lastFirst.map((id) => [id, 1]))),
      },
      { rows: 'usage_counts', column: 'key_id', record: () => store.accounts.recordUsage(counts, new Map()) },
    ]
    for (const { rows, column, record } of waits) {
      const unlock = await opened.lock(`SELECT 1 FROM ${rows} WHERE ${column} = '${first}' FOR UPDATE`)
      const recorded = record()
      await opened.untilBlocked(1)
      const free = await sql`SELECT 1 FROM ${sql(rows)} WHERE ${sql(column)} <> ${first!} FOR UPDATE SKIP LOCKED`
      assert.equal(free.length, rest.length, `while it waits for the first of ${rows}, it holds others`)
      const counted = await sql`SELECT 1 FROM usage_counts WHERE key_id <> ${first!} FOR UPDATE SKIP LOCKED`
      assert.equal(counted.length, rest.length, `while it waits for the first of ${rows}, it holds counts`)
      await unlock()
      await recorded
    }
  })

  it('say which category has the name that somebody gives by hand at the same time', async () => {
    await using opened = await openPostgres()
    const commit = await opened.lock("INSERT INTO categories (number, name, name_folded) VALUES (1, 'Cats', 'cats')")
    const saved = opened.store.categories.save({ number: 2n, name: 'Cats' }, undefined, event('acct'))
    await opened.untilBlocked(1)
    await commit()
    assert.deepEqual(await saved, { number: 1n, name: 'Cats' })
  })

  it('let a purge of idempotency records pass over one that is in use', async () => {
    await using opened = await openPostgres()
    const { pets } = opened.store
    for (const key of ['used', 'old', 'older']) await pets.create(rex, idempotency(key))
    const unlock = await opened.lock("SELECT 1 FROM idempotency_records WHERE key = 'used' FOR UPDATE")
    assert.equal(await pets.purgeIdempotencyRecords(2000), 2)
    await unlock()
    assert.equal(await pets.purgeIdempotencyRecords(2000), 1)
  })

  it('let the other purges pass over rows that another instance is removing', async () => {
    await using opened = await openPostgres()
    const { store, sql } = opened
    await addKeys(store, ['key_1', 'key_2'])
    const counts = ['key_1', 'key_2'].map((keyId) => ({ ...usage, keyId }))
    await store.accounts.recordUsage(counts, new Map())
    await store.accounts.recordFailures(Array.from({ length: FAILED_REQUESTS_KEPT }, () => failure))
    for (const byte of [1, 2]) await store.accounts.createSession(session(byte), 'hash', event('acct'))
    const unlock = await opened.lock(`
      SELECT 1 FROM usage_counts WHERE key_id = 'key_1' FOR UPDATE;
      SELECT 1 FROM sessions ORDER BY token_hash LIMIT 1 FOR UPDATE;
      SELECT 1 FROM failed_requests ORDER BY id LIMIT 1 FOR UPDATE`)
    const left = async () =>
      (
        await sql`SELECT (SELECT count(*) FROM usage_counts)::int AS usage, (SELECT count(*) FROM sessions)::int AS sessions,
          (SELECT count(*) FROM failed_requests)::int AS failed`
      )[0]
    const purge = async () => {
      await store.accounts.purgeUsage(1)
      await store.accounts.purgeSessions(2, 2, 2)
      await store.accounts.recordFailures([failure, failure])
    }
    await purge()
    assert.deepEqual(await left(), { usage: 1, sessions: 1, failed: FAILED_REQUESTS_KEPT + 1 })
    await unlock()
    await purge()
    assert.deepEqual(await left(), { usage: 0, sessions: 0, failed: FAILED_REQUESTS_KEPT })
  })

  it('make a create the first one where the record of its key is purged while it looks', async () => {
    await using opened = await openPostgres()
    const { store, sql } = opened
    await store.pets.create(rex, idempotency('k'))
    const unlock = await opened.lock('SELECT 1 FROM idempotency_records FOR UPDATE')
    const created = store.pets.create(rex, idempotency('k'))
    await opened.untilBlocked(1)
    // Stands in line behind the create's first statement, and before its second.
    const purged = sql.begin(async (transaction) => {
      await transaction`LOCK TABLE idempotency_records IN ACCESS EXCLUSIVE MODE`
      await transaction`DELETE FROM idempotency_records`
    })
    await until(
      async () => (await sql`SELECT 1 FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND NOT granted`).length > 0,
      'the purge stands in line',
    )
    await unlock()
    await purged
    assert.equal((await created).outcome, 'created')
    assert.equal((await store.pets.create(rex, idempotency('k'))).outcome, 'replayed')
  })

  it('start no session with a password that is being changed, and end one that starts while a change waits', async () => {
    await using opened = await openPostgres('statement_timeout=60000')
    const { accounts } = opened.store
    await addKeys(opened.store, [])
    const changed = await opened.lock("UPDATE accounts SET password_hash = 'second'")
    const late = accounts.createSession(session(1), 'hash', event('acct', 'session.started'))
    await opened.untilBlocked(1)
    await changed()
    assert.equal(await late, false)
    assert.equal(await accounts.sessionByHash(session(1).tokenHash), undefined)
    const started = await opened.lock(`
      INSERT INTO sessions SELECT '\\x02'::bytea, id, 1, 1 FROM accounts FOR SHARE`)
    const change = accounts.setPassword('acct', 'third', event('acct', 'account.password_changed'), 'second')
    await opened.untilBlocked(1)
    await started()
    assert.equal(await change, true)
    assert.deepEqual([...(await opened.sql`SELECT token_hash FROM sessions`)], [])
  })

  it('leave no time limit on a connection that they waited on', async () => {
    await using opened = await openPostgres()
    const pool = new Pool(parseConnection(`${opened.url}pool_size=1`))
    await postgresPets(pool, postgresSql(pool), gatherCreates(pool)).create(rex, idempotency('k'))
    const [limit] = await pool.read((sql) => sql`SELECT current_setting('lock_timeout') AS ms`)
    await pool.end()
    assert.deepEqual({ ...limit }, { ms: '0' })
  })

  it('read the failed requests of no other account to keep the newest of one', async () => {
    await using opened = await openPostgres()
    const { store, sql } = opened
    await addKeys(store, [])
    await sql`
      INSERT INTO accounts (id, email, email_folded, password_hash, created_at, role)
      SELECT i, i, i, '', 1, 'member' FROM generate_series(1, 200) AS i`
    await sql`
      INSERT INTO failed_requests (at, account_id, key_id, request_id, operation, status, code, message)
      SELECT 1, i, '', '', '', 404, '', '' FROM generate_series(1, 200) AS i, generate_series(1, 100)`
    await sql`ANALYZE`
    await store.accounts.recordFailures([failure])
    const read = () => sql`SELECT n_tup_ins, seq_tup_read FROM pg_stat_user_tables WHERE relname = 'failed_requests'`
    await until(async () => (await read())[0]!['n_tup_ins'] === '20001')
    assert.equal((await read())[0]!['seq_tup_read'], '0')
  })

  it('prepare a statement once, whichever integers are absent: a long copy would fill the memory of the server', async () => {
    await using opened = await openPostgres()
    const pool = new Pool(parseConnection(`${opened.url}pool_size=1`))
    const records = postgresRecords(pool, postgresSql(pool))
    for (const added_at of [null, 5n]) await records.write(kindOf('pets'), [{ ...petRow(added_at ?? 1n), added_at }])
    const prepared = await pool.read(
      (sql) => sql`SELECT FROM pg_prepared_statements WHERE statement ~ '^INSERT INTO pets'`,
    )
    await pool.end()
    assert.equal(prepared.length, 1)
  })
})

// After connections to PostgreSQL have broken, the store goes on with new ones, and with no more of them than before.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { until } from '../harness/until.ts'
import { Sessions } from '../../src/accounts/sessions.ts'
import { openConnections, openPostgres, rex, slowCall, unavailable } from '../harness/databases/open-postgres.ts'
import { account, event } from '../harness/databases/sample-rows.ts'

/** Far longer than a test takes, so that nothing else ends a wait. */
const PATIENT = 'connect_timeout=30&statement_timeout=60000'

describe('after a connection to PostgreSQL has broken', { concurrency: false }, () => {
  it('a read that ran on it is done, a create that ran on it fails, and calls that waited for it are done', async () => {
    await using opened = await openPostgres(`pool_size=1&${PATIENT}`)
    const { store } = opened
    const kinds: [table: string, call: () => Promise<unknown>, waits: () => Promise<unknown>][] = [
      ['accounts', () => slowCall(opened), () => store.ping()],
      ['pets', () => assert.rejects(store.pets.create(rex), unavailable(/./)), () => store.pets.create(rex)],
    ]
    for (const [table, call, waits] of kinds) {
      const unlock = await opened.lock(`LOCK TABLE ${table}`)
      const ran = call()
      await opened.untilBlocked(1)
      const waited = waits()
      await opened.endBackends()
      await unlock()
      await Promise.all([ran, waited])
    }
  })

  it('a transaction that ran on it fails and is undone, and the process goes on', async () => {
    await using opened = await openPostgres(PATIENT)
    const { store, proxy } = opened
    const { accounts } = store
    await accounts.createAccount(account('acct'), event('acct'))
    const breaks = {
      'the server ends it': () => opened.endBackends(),
      'the network closes it': () => {
        proxy.goAway()
        proxy.comeBack()
      },
    }
    for (const [how, breakIt] of Object.entries(breaks)) {
      const unlock = await opened.lock('LOCK TABLE sessions')
      const failed = assert.rejects(accounts.setPassword('acct', 'new', event('acct')), unavailable(/./), how)
      await opened.untilBlocked(1)
      await breakIt()
      await failed
      await unlock()
      // What the driver does to a broken connection, it does a turn later.
      await setImmediate()
      await until(async () => (await opened.backends()).length === 0, 'the server has rolled back')
      assert.equal((await accounts.accountById('acct'))?.passwordHash, account('acct').passwordHash)
    }
    assert.equal(await accounts.setPassword('acct', 'new', event('acct')), true)
  })

  it('while nobody used it, the next create does not use it, and its place is free again', async () => {
    await using opened = await openPostgres(`pool_size=2&${PATIENT}`)
    for (let round = 0; round < 2; round += 1) {
      await openConnections(opened, 2)
      await opened.endBackends()
      await until(() => opened.store.connections()!.idle === 0, 'no broken connection is counted as idle')
      assert.equal((await opened.store.pets.create(rex)).outcome, 'created')
    }
  })

  it('without a word, only the call that found out fails: no later one meets another dead connection', async () => {
    await using opened = await openPostgres('pool_size=4&statement_timeout=3000')
    await openConnections(opened, 4)
    opened.proxy.silence()
    await assert.rejects(opened.store.pets.create(rex), unavailable(/no answer within/))
    for (let round = 0; round < 4; round += 1) assert.equal((await opened.store.pets.create(rex)).outcome, 'created')
    await until(async () => opened.proxy.connections().open <= 4, 'the dead connections are closed')
  })

  it('and its host was demoted, no other connection to it is used either', async () => {
    await using opened = await openPostgres(`pool_size=3&${PATIENT}`)
    await openConnections(opened, 3)
    const before = await opened.backends()
    await opened.sql`CREATE FUNCTION demoted() RETURNS TRIGGER LANGUAGE plpgsql AS
      $$BEGIN RAISE EXCEPTION 'read-only' USING ERRCODE = '25006'; END$$`
    await opened.sql`CREATE TRIGGER demoted BEFORE INSERT ON pets FOR EACH ROW WHEN (new.name = 'too late') EXECUTE FUNCTION demoted()`
    await assert.rejects(opened.store.pets.create({ ...rex, name: 'too late' }), unavailable(/read-only/))
    assert.equal((await opened.store.pets.create(rex)).outcome, 'created')
    await until(
      async () => (await opened.backends()).every((pid) => !before.includes(pid)),
      'all connections to it are closed',
    )
  })
})

describe('a PostgreSQL that is read-only for long', () => {
  it('keeps its connections while pages are viewed, whose sessions have a last use to write', async () => {
    await using opened = await openPostgres()
    const { store, sql, proxy } = opened
    let now = 1_790_000_000_000
    const sessions = new Sessions(store, () => now)
    const you = account('you')
    await store.accounts.createAccount(you, event(you.id))
    const token = await sessions.start(you, '192.0.2.1')
    await sql.unsafe(`ALTER DATABASE ${sql.options.database} SET default_transaction_read_only = on`)
    await opened.endBackends()
    await until(async () => proxy.connections().open === 0, 'the connections have broken')
    now += 60_000
    // The first view tries to write and loses its connection, the second one opens another.
    for (let view = 0; view < 2; view += 1) assert.ok(await sessions.find(token!))
    const { made } = proxy.connections()
    for (let view = 0; view < 10; view += 1) assert.ok(await sessions.find(token!))
    assert.equal(proxy.connections().made, made)
  })
})

// After connections to PostgreSQL have broken, the store goes on with new ones, and with no more of them than before.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { Sessions } from '../src/accounts/sessions.ts'
import type { NewPet } from '../src/contract/pets.ts'
import { readConfig } from '../src/config.ts'
import { openStore } from '../src/store/open-store.ts'
import { CannotOpenStore, StoreUnavailable } from '../src/store/store.ts'
import { startCuttingProxy } from './cutting-proxy.ts'
import { until } from '../assurance/harness/until.ts'
import { type OpenPostgres, openPostgres } from './open-postgres.ts'
import { account, event } from './sample-rows.ts'

const rex: NewPet = { name: 'Rex', categoryId: 3n, status: 'available' }

const unavailable = (message: RegExp) => (error: unknown) =>
  error instanceof StoreUnavailable && message.test(error.message)

/** A call that lasts for as long as the accounts are locked. */
const slowCall = ({ store }: OpenPostgres) => store.accounts.listAccounts()

/** Makes the store use this many connections at once; afterwards they are idle. */
async function openConnections(opened: OpenPostgres, count: number): Promise<void> {
  const unlock = await opened.lock('LOCK TABLE accounts')
  const calls = Array.from({ length: count }, () => slowCall(opened))
  await opened.untilBlocked(count)
  await unlock()
  await Promise.all(calls)
}

describe('after a connection to PostgreSQL has broken', { concurrency: false, timeout: 120_000 }, () => {
  it('a read that ran on it is done, and one that waited for it too', async () => {
    await using opened = await openPostgres('pool_size=1&connect_timeout=30&statement_timeout=60000')
    for (let round = 0; round < 3; round += 1) {
      const unlock = await opened.lock('LOCK TABLE accounts')
      const ran = slowCall(opened)
      await opened.untilBlocked(1)
      const waited = opened.store.ping()
      await opened.endBackends()
      await unlock()
      await Promise.all([ran, waited])
    }
  })

  it('a transaction that ran on it fails and is undone, and the process goes on', async () => {
    await using opened = await openPostgres('connect_timeout=30&statement_timeout=60000')
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

  it('a create that ran on it fails, and one that waited for it is done', async () => {
    await using opened = await openPostgres('pool_size=1&connect_timeout=30&statement_timeout=60000')
    const unlock = await opened.lock('LOCK TABLE pets')
    const ran = assert.rejects(opened.store.pets.create(rex), unavailable(/./))
    await opened.untilBlocked(1)
    const waited = opened.store.pets.create(rex)
    await opened.endBackends()
    await ran
    await unlock()
    assert.equal((await waited).outcome, 'created')
  })

  it('while nobody used it, its place is free again', async () => {
    await using opened = await openPostgres('pool_size=1')
    for (let round = 0; round < 3; round += 1) {
      await opened.endBackends()
      await until(async () => opened.proxy.connections().open === 0, 'the connection has broken')
      await opened.store.ping()
    }
  })

  it('while nobody used it, the next create does not use it either', async () => {
    await using opened = await openPostgres('pool_size=2&connect_timeout=30&statement_timeout=60000')
    await openConnections(opened, 2)
    await opened.endBackends()
    await until(() => opened.store.connections()!.idle === 0, 'no broken connection is counted as idle')
    assert.equal((await opened.store.pets.create(rex)).outcome, 'created')
  })

  it('without a word, only the call that found out fails: no later one meets another dead connection', async () => {
    await using opened = await openPostgres('pool_size=4&statement_timeout=3000')
    await openConnections(opened, 4)
    opened.proxy.silence()
    await assert.rejects(opened.store.pets.create(rex), unavailable(/no answer within/))
    for (let round = 0; round < 4; round += 1) assert.equal((await opened.store.pets.create(rex)).outcome, 'created')
    await until(async () => opened.proxy.connections().open <= 4, 'the dead connections are closed')
  })

  it('and PostgreSQL is away, those who wait are told so, without a storm of tries; when it is back, all is well', async () => {
    await using opened = await openPostgres('pool_size=2&connect_timeout=30&statement_timeout=60000')
    const { store, proxy } = opened
    const unlock = await opened.lock('LOCK TABLE accounts')
    const refused = (call: Promise<unknown>) => assert.rejects(call, unavailable(/Cannot connect to PostgreSQL/))
    const ran = [refused(slowCall(opened)), refused(slowCall(opened))]
    await opened.untilBlocked(2)
    const waited = Array.from({ length: 20 }, () => refused(store.ping()))
    const { made } = proxy.connections()
    proxy.goAway()
    await unlock()
    await Promise.all([...ran, ...waited])
    for (let round = 0; round < 200; round += 1) await refused(store.ping())
    assert.ok(proxy.connections().made - made < 50, 'every call tries to connect')
    proxy.comeBack()
    await until(
      () =>
        store.ping().then(
          () => true,
          () => false,
        ),
      'the store is back',
    )
    await Promise.all(Array.from({ length: 10 }, () => store.ping()))
    assert.ok(proxy.connections().open <= 2)
  })

  it('and its host was demoted, the next call goes over a new connection', async () => {
    await using opened = await openPostgres('pool_size=1')
    await opened.sql`CREATE FUNCTION demoted() RETURNS TRIGGER LANGUAGE plpgsql AS
      $$BEGIN RAISE EXCEPTION 'read-only' USING ERRCODE = '25006'; END$$`
    await opened.sql`CREATE TRIGGER demoted BEFORE INSERT ON pets FOR EACH ROW WHEN (new.name = 'too late') EXECUTE FUNCTION demoted()`
    const [before] = await opened.backends()
    await assert.rejects(opened.store.pets.create({ ...rex, name: 'too late' }), unavailable(/read-only/))
    assert.equal((await opened.store.pets.create(rex)).outcome, 'created')
    await until(async () => !(await opened.backends()).includes(before!), 'the connection to it is closed')
  })

  it('and its host was demoted, no other connection to it is used', async () => {
    await using opened = await openPostgres('pool_size=3&connect_timeout=30&statement_timeout=60000')
    await openConnections(opened, 3)
    const before = await opened.backends()
    await opened.sql`CREATE FUNCTION demoted() RETURNS TRIGGER LANGUAGE plpgsql AS
      $$BEGIN RAISE EXCEPTION 'read-only' USING ERRCODE = '25006'; END$$`
    await opened.sql`CREATE TRIGGER demoted BEFORE INSERT ON pets FOR EACH ROW EXECUTE FUNCTION demoted()`
    await assert.rejects(opened.store.pets.create(rex), unavailable(/read-only/))
    await opened.store.ping()
    await until(
      async () => (await opened.backends()).every((pid) => !before.includes(pid)),
      'all connections to it are closed',
    )
  })

  it('the host that last answered is asked first', async () => {
    await using opened = await openPostgres()
    await using dead = await startCuttingProxy(opened.url)
    dead.goAway()
    const url = opened.url.replace('@', `@${new URL(dead.url).host},`)
    const store = await openStore(readConfig({ database: `${url}pool_size=1` }, {}).database)
    assert.equal(dead.connections().made, 1)
    for (let round = 0; round < 3; round += 1) {
      await opened.endBackends()
      await until(async () => opened.proxy.connections().open === 0, 'the connections have broken')
      await store.ping()
    }
    await store.close()
    assert.equal(dead.connections().made, 1)
  })
})

describe('a PostgreSQL that is read-only for long', { timeout: 60_000 }, () => {
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

describe('a connection to PostgreSQL that can not be used', { timeout: 60_000 }, () => {
  it('is closed again: a standby that is tried over and over keeps none of them', async () => {
    await using opened = await openPostgres()
    await opened.store.close()
    await opened.sql.unsafe(`ALTER DATABASE ${opened.sql.options.database} SET default_transaction_read_only = on`)
    const { database } = readConfig({ database: `${opened.url}target_session_attrs=primary` }, {})
    for (let round = 0; round < 3; round += 1) {
      await assert.rejects(
        openStore(database),
        (error) => error instanceof CannotOpenStore && /read-only/.test(error.message),
      )
    }
    await until(async () => (await opened.backends()).length === 0, 'every connection is closed')
  })

  it('is closed again: an interrupted copy that is refused leaves none', async () => {
    await using opened = await openPostgres()
    await opened.store.setUnfinishedCopy(true)
    await opened.store.close()
    await assert.rejects(openStore(readConfig({ database: opened.url }, {}).database), /a copy that was interrupted/)
    await until(async () => (await opened.backends()).length === 0, 'every connection is closed')
  })

  it('is closed again: a start that is refused for a newer schema leaves none', async () => {
    await using opened = await openPostgres()
    await opened.store.close()
    await opened.sql`INSERT INTO petstore_migrations VALUES (99, 'from the future', 99, 0)`
    await assert.rejects(openStore(readConfig({ database: opened.url }, {}).database), /schema version 99/)
    await until(async () => (await opened.backends()).length === 0, 'every connection is closed')
  })
})

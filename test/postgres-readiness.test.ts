// When the service says that it is ready, a create sent right then works, whatever PostgreSQL has been through.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { readConfig } from '../src/config.ts'
import type { NewPet } from '../src/contract/pets.ts'
import { openStore } from '../src/store/open-store.ts'
import { NoWrites, type Store, StoreUnavailable } from '../src/store/store.ts'
import { askPostgres } from '../assurance/harness/ask-postgres.ts'
import { until } from '../assurance/harness/until.ts'
import { expectError, startPetstore } from './harness.ts'
import { openInTime, type OpenPostgres, openPostgres } from './open-postgres.ts'
import { type PostgresServer, startPostgres } from '../assurance/harness/postgres-server.ts'

const rex: NewPet = { name: 'Rex', categoryId: 3n, status: 'available' }

/** Starts creates that do not share a statement. */
async function startCreates({ pets }: Store, count: number): Promise<Promise<unknown>[]> {
  const creates: Promise<unknown>[] = []
  for (let nth = 0; nth < count; nth += 1) {
    creates.push(pets.create(rex))
    await setImmediate()
    await setImmediate()
  }
  return creates
}

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

describe('a PostgreSQL that the service calls ready', { concurrency: false, timeout: 300_000 }, () => {
  let server: PostgresServer
  before(async () => {
    server = await startPostgres()
  })
  after(() => server.end())

  /** With this pool, writes may use three connections. */
  const open = () => openPostgres('pool_size=4&connect_timeout=1&statement_timeout=1000', server.url)

  /** Lets the store open all connections of its pool, and returns the process of each. */
  async function fill(opened: OpenPostgres): Promise<number[]> {
    await until(async () => {
      const unlock = await opened.lock('LOCK TABLE accounts')
      let isOver = false
      const calls = Promise.allSettled(Array.from({ length: 4 }, () => opened.store.accounts.listAccounts())).then(
        () => (isOver = true),
      )
      await until(async () => isOver || (await opened.backends()).length === 4, 'all connections are open')
      await unlock()
      await calls
      // On a busy machine the lock may last longer than a statement may take, whose connection is closed then.
      return opened.store.connections()!.idle === 4
    }, 'all connections are idle')
    return opened.backends()
  }

  /** Sends these calls to a server that hangs, and waits until each has failed. */
  async function callInVain(
    { store }: OpenPostgres,
    { reads, writes }: { reads: number; writes: number },
  ): Promise<void> {
    const calls: Promise<unknown>[] = Array.from({ length: reads }, () => store.pets.list({ limit: 21 }))
    calls.push(...(await startCreates(store, writes)))
    await Promise.all(calls.map((call) => assert.rejects(call, StoreUnavailable)))
    assert.equal(store.connections()!.parked, writes)
    // By now new connections have been tried in vain, too.
    await assert.rejects(store.ping(), StoreUnavailable)
  }

  /** Asks without pause, so that a create is sent in the very moment in which the service is ready again. */
  async function assertCreatesOnceReady({ store }: OpenPostgres): Promise<void> {
    await until(
      () =>
        store.ping().then(
          () => true,
          () => false,
        ),
      'it is ready',
    )
    assert.equal((await store.pets.create(rex)).outcome, 'created')
    await until(async () => store.connections()!.parked === 0, 'no write is left without an answer')
    await store.ping()
    assert.equal((await store.pets.create(rex)).outcome, 'created')
  }

  const shapes = {
    'reads only': { reads: 4, writes: 0 },
    'one write': { reads: 0, writes: 1 },
    'some of both': { reads: 2, writes: 2 },
    'all writes that it may have': { reads: 1, writes: 3 },
  }
  for (const [what, calls] of Object.entries(shapes)) {
    it(`takes creates after it hung during ${what}, and woke up`, async () => {
      await using opened = await open()
      await fill(opened)
      await server.pause()
      try {
        await callInVain(opened, calls)
      } finally {
        await server.resume()
      }
      await assertCreatesOnceReady(opened)
    })
  }

  it('takes creates after it hung and was restarted', async () => {
    await using opened = await open()
    await fill(opened)
    await server.pause()
    try {
      await callInVain(opened, { reads: 1, writes: 3 })
    } finally {
      await server.stop()
      await server.start()
    }
    await assertCreatesOnceReady(opened)
  })

  it('takes creates after it was read-only, as a standby is until it is promoted', async () => {
    await using opened = await open()
    const { store, sql } = opened
    await fill(opened)
    await sql`ALTER SYSTEM SET default_transaction_read_only = on`
    await sql`SELECT pg_reload_conf()`
    try {
      await until(
        () =>
          store.ping().then(
            () => false,
            (error) => error instanceof NoWrites,
          ),
        'it is not ready',
      )
      assert.deepEqual(await store.pets.list({ limit: 21 }), [])
    } finally {
      await sql`ALTER SYSTEM RESET default_transaction_read_only`
      await sql`SELECT pg_reload_conf()`
    }
    await assertCreatesOnceReady(opened)
  })

  it('takes creates as soon as a new connection does: one to a server that became read-only is not kept', async () => {
    await using opened = await openPostgres('pool_size=1', server.url)
    await opened.store.close()
    /** Applies to new connections, as behind an address that leads to another server now. */
    const setReadOnly = (state: 'on' | 'off') =>
      askPostgres(
        server.url,
        `ALTER DATABASE ${opened.sql.options.database} SET default_transaction_read_only = ${state}`,
      )
    await setReadOnly('on')
    const store = await openStore(readConfig({ database: opened.url }, {}).database)
    try {
      await assert.rejects(store.ping(), NoWrites)
      await setReadOnly('off')
      await store.ping()
      assert.equal((await store.pets.create(rex)).outcome, 'created')
    } finally {
      await store.close()
    }
  })

  it('takes a create on a connection whose overdue answer came while the pool asked about it', async () => {
    await using opened = await openPostgres('pool_size=2&connect_timeout=60&statement_timeout=2000', server.url)
    const { store, proxy } = opened
    await store.pets.create(rex)
    const overdue = proxy.holdNextAnswer()
    await assert.rejects(store.pets.create(rex), /no answer within/)
    await store.pets.list({ limit: 21 })
    // Over the other connection the pool asks, every second, which of those without an answer the server still works on.
    const asked = proxy.holdNextAnswer()
    await asked.arrived
    overdue.release()
    await until(async () => store.connections()!.idle === 1, 'the answer has come')
    const unlock = await opened.lock('LOCK TABLE pets')
    const create = store.pets.create(rex)
    await opened.untilBlocked(1)
    asked.release()
    await until(async () => store.connections()!.idle === 1, 'the pool knows')
    await unlock()
    assert.equal((await create).outcome, 'created')
  })

  it('is ready as soon as a later write has succeeded, though an earlier one still has no answer', async () => {
    await using opened = await openPostgres('pool_size=4&connect_timeout=60&statement_timeout=2000', server.url)
    const { store, proxy } = opened
    await store.pets.create(rex)
    const overdue = proxy.holdNextAnswer()
    await assert.rejects(store.pets.create(rex), /no answer within/)
    assert.equal((await store.pets.create(rex)).outcome, 'created')
    await store.ping()
    overdue.release()
  })

  it('is not ready while a write is overdue, though connections for more are left, until another one has succeeded', async () => {
    await using opened = await openPostgres('pool_size=4&statement_timeout=2000', server.url)
    await using petstore = await openInTime(() => startPetstore({ database: opened.url, chores: false }))
    const unlock = await opened.lock('LOCK TABLE pets')
    const create = petstore.add({ name: 'Rex', categoryId: 3 })
    await opened.untilBlocked(1)
    const [backend] = await opened.sql<{ pid: number }[]>`
      SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
    // It does not notice its statement timeout, as one that waits for its synchronous standby.
    signal([backend!.pid], 'SIGSTOP')
    try {
      assert.equal((await create).status, 503)
      await unlock()
      assert.equal(petstore.store.connections()!.parked, 1)
      const message = await expectError(await fetch(`${petstore.url}/readyz`), 'service_unavailable')
      assert.equal(message, 'The database accepts no writes.')
      assert.equal((await petstore.add({ name: 'Rex', categoryId: 3 })).status, 201)
      assert.equal((await fetch(`${petstore.url}/readyz`)).status, 200)
      assert.equal(petstore.store.connections()!.parked, 1)
    } finally {
      signal([backend!.pid], 'SIGCONT')
    }
  })

  it('is called not ready within two seconds where it hangs, on the admin port, too', async () => {
    // Far longer than the test waits for an answer, so that nothing else ends the wait.
    const database = 'pool_size=4&connect_timeout=60&statement_timeout=60000'
    await using opened = await openPostgres(database, server.url)
    const { proxy, url } = opened
    await using petstore = await startPetstore({ database: url, chores: false, env: { PETSTORE_ADMIN_PORT: '0' } })
    proxy.holdStatements()
    const ports = [petstore.url, petstore.adminUrl]
    const answers = ports.map((port) => fetch(`${port}/readyz`, { signal: AbortSignal.timeout(30_000) }))
    for (const answer of await Promise.all(answers))
      assert.equal(await expectError(answer, 'service_unavailable'), 'The database does not answer.')
    proxy.goAway()
  })

  it('uses all its connections again once one has woken up', async () => {
    await using opened = await open()
    const [postmaster, ...backends] = await processes(opened)
    signal([postmaster!, ...backends], 'SIGSTOP')
    try {
      await callInVain(opened, { reads: 0, writes: 1 })
      for (let round = 0; round < 4; round += 1) await assert.rejects(opened.store.ping(), StoreUnavailable)
      signal(backends, 'SIGCONT')
      await until(
        () =>
          opened.store.ping().then(
            () => true,
            () => false,
          ),
        'it is ready',
      )
    } finally {
      signal([postmaster!, ...backends], 'SIGCONT')
    }
    await until(async () => (await opened.backends()).length === 1, 'the connections that were closed have ended')
    await fill(opened)
  })

  /** The process that accepts connections, and those that serve the store's. */
  async function processes(opened: OpenPostgres): Promise<number[]> {
    const backends = await fill(opened)
    const [file] = await opened.sql<{ text: string }[]>`SELECT pg_read_file('postmaster.pid') AS text`
    return [Number.parseInt(file!.text, 10), ...backends]
  }
  const signal = (pids: readonly number[], name: 'SIGSTOP' | 'SIGCONT') => {
    for (const pid of pids) if (isThere(pid)) process.kill(pid, name)
  }

  for (const writes of [1, 3]) {
    it(`takes creates while one of its processes after the other wakes up, ${writes} with a write`, async () => {
      await using opened = await open()
      const pids = await processes(opened)
      signal(pids, 'SIGSTOP')
      try {
        await callInVain(opened, { reads: 0, writes })
        for (const pid of pids.toReversed()) {
          signal([pid], 'SIGCONT')
          await setTimeout(20)
          if (
            await opened.store.ping().then(
              () => true,
              () => false,
            )
          )
            assert.equal((await opened.store.pets.create(rex)).outcome, 'created')
        }
      } finally {
        signal(pids, 'SIGCONT')
      }
      await assertCreatesOnceReady(opened)
    })

    it(`takes creates while only ${writes} of its connections sleep, with a write each`, async () => {
      await using opened = await open()
      const [, ...backends] = await processes(opened)
      signal(backends, 'SIGSTOP')
      try {
        const creates = startCreates(opened.store, writes)
        await Promise.all((await creates).map((create) => assert.rejects(create, StoreUnavailable)))
        await assertCreatesOnceReady(opened)
      } finally {
        signal(backends, 'SIGCONT')
      }
    })
  }
})

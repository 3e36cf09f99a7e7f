// When the service says that it is ready, a create sent right then works, whatever PostgreSQL has been through. A commit that waits
// for a synchronous standby is not cancelled, takes no more than its place, and reads go on.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { NoWrites, StoreBusy, StoreUnavailable } from '../../src/store/store.ts'
import { askPostgres } from '../harness/databases/ask-postgres.ts'
import { until } from '../harness/until.ts'
import { expectError, startPetstore } from '../harness/harness.ts'
import {
  type OpenPostgres,
  openPostgres,
  rex,
  slowCall,
  startCreates,
  unavailable,
  works,
} from '../harness/databases/open-postgres.ts'
import { type PostgresServer, startPostgres } from '../harness/databases/postgres-server.ts'

let server: PostgresServer
before(async () => void (server = await startPostgres()))
after(() => server.end())

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

describe('a PostgreSQL that the service calls ready', { concurrency: false }, () => {
  /** With this pool, writes may use three connections. */
  const open = () => openPostgres('pool_size=4&connect_timeout=1&statement_timeout=1000', server.url)

  /** Lets the store open all connections of its pool, and returns the process of each. */
  async function fill(opened: OpenPostgres): Promise<number[]> {
    await until(async () => {
      const unlock = await opened.lock('LOCK TABLE accounts')
      let isOver = false
      const calls = Promise.allSettled(Array.from({ length: 4 }, () => slowCall(opened))).then(() => (isOver = true))
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
    await until(() => works(store.ping()), 'it is ready')
    assert.equal((await store.pets.create(rex)).outcome, 'created')
    await until(async () => store.connections()!.parked === 0, 'no write is left without an answer')
    await store.ping()
    assert.equal((await store.pets.create(rex)).outcome, 'created')
  }

  const shapes = {
    'reads only': { reads: 4, writes: 0 },
    'some of both': { reads: 2, writes: 2 },
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

  /** The process that accepts connections, and those that serve the store's. */
  async function processes(opened: OpenPostgres): Promise<number[]> {
    const backends = await fill(opened)
    const [file] = await opened.sql<{ text: string }[]>`SELECT pg_read_file('postmaster.pid') AS text`
    return [Number.parseInt(file!.text, 10), ...backends]
  }
  const signal = (pids: readonly number[], name: 'SIGSTOP' | 'SIGCONT') => {
    for (const pid of pids) if (isThere(pid)) process.kill(pid, name)
  }

  it('takes creates while one of its processes after the other wakes up, three with a write', async () => {
    await using opened = await open()
    const pids = await processes(opened)
    signal(pids, 'SIGSTOP')
    try {
      await callInVain(opened, { reads: 0, writes: 3 })
      for (const pid of pids.toReversed()) {
        signal([pid], 'SIGCONT')
        await setTimeout(20)
        if (await works(opened.store.ping())) assert.equal((await opened.store.pets.create(rex)).outcome, 'created')
      }
    } finally {
      signal(pids, 'SIGCONT')
    }
    await assertCreatesOnceReady(opened)
    await fill(opened)
  })

  it('takes creates while only three of its connections sleep, with a write each', async () => {
    await using opened = await open()
    const [, ...backends] = await processes(opened)
    signal(backends, 'SIGSTOP')
    try {
      for (const create of await startCreates(opened.store, 3)) await assert.rejects(create, StoreUnavailable)
      await assertCreatesOnceReady(opened)
    } finally {
      signal(backends, 'SIGCONT')
    }
  })
})

describe('while the synchronous standby of PostgreSQL is away', { concurrency: false }, () => {
  /** Commits wait for a standby that does not exist, until it is called "back". */
  const standbyIsAway = async (opened: OpenPostgres) => {
    await askPostgres(server.url, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    await askPostgres(server.url, 'SELECT pg_reload_conf()')
    // Commits go on until the checkpointer has read the setting, which shows nowhere else.
    let commits = 0
    const commit = async () => {
      commits += 1
      await opened.sql`SELECT pg_logical_emit_message(true, 'a', 'commit')`
      commits -= 1
    }
    await until(async () => {
      if (commits < 2) void commit()
      return (await waitingCommits(opened)).length > 0
    }, 'commits wait')
    await until(async () => {
      for (const pid of await waitingCommits(opened)) await opened.sql`SELECT pg_cancel_backend(${pid})`
      return commits === 0
    }, 'the commits that tried it wait no more')
  }
  const standbyIsBack = async () => {
    await askPostgres(server.url, 'ALTER SYSTEM RESET synchronous_standby_names')
    await askPostgres(server.url, 'SELECT pg_reload_conf()')
  }
  const waitingCommits = async ({ sql }: OpenPostgres) => {
    const rows = await sql`
      SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND datname = current_database() ORDER BY pid`
    return rows.map((row) => row['pid'] as number)
  }

  for (const { size, writes } of [
    { size: 4, writes: 3 },
    { size: 1, writes: 1 },
  ]) {
    it(`creates fail in time, and lists go on, with at most ${Math.max(2, size)} connections of a pool of ${size}`, async () => {
      await using opened = await openPostgres(`pool_size=${size}&connect_timeout=20&statement_timeout=1000`, server.url)
      const { store } = opened
      await standbyIsAway(opened)
      try {
        for (let parked = 1; parked <= writes; parked += 1) {
          await assert.rejects(store.pets.create(rex), unavailable(/no answer within/))
          assert.equal(store.connections()!.parked, parked)
          await assert.rejects(store.ping(), NoWrites)
        }
        const waiting = await waitingCommits(opened)
        assert.equal(waiting.length, writes)
        for (let round = 0; round < 20; round += 1) {
          await assert.rejects(store.pets.create(rex), StoreBusy)
          // What is not replicated is not shown.
          assert.deepEqual(await store.pets.list({ limit: 21 }), [])
        }
        // Long enough for the pool to ask about them.
        await opened.sql`SELECT pg_sleep(2.5)`
        assert.deepEqual(await waitingCommits(opened), waiting, 'a commit was cancelled')
        assert.ok((await opened.backends()).length <= Math.max(2, size))
      } finally {
        await standbyIsBack()
      }
      await until(async () => store.connections()!.parked === 0, 'the answers have come')
      await store.ping()
      assert.equal((await store.pets.create(rex)).outcome, 'created')
      assert.equal((await store.pets.countByStatus()).available, writes + 1)
      await until(async () => (await opened.backends()).length <= size, 'there are no more connections than before')
    })
  }

  it('the store closes nevertheless', async () => {
    await using opened = await openPostgres('pool_size=2&statement_timeout=300', server.url)
    await standbyIsAway(opened)
    try {
      await assert.rejects(opened.store.pets.create(rex), StoreUnavailable)
      await opened.store.close()
    } finally {
      await standbyIsBack()
    }
  })
})

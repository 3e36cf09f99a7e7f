// A commit that waits for a synchronous standby: nothing cancels it, it takes no more than its place, and reads go on.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import connectTo from 'postgres'
import { NoWrites, StoreBusy, StoreUnavailable } from '../src/store/store.ts'
import { until } from '../assurance/harness/until.ts'
import { type OpenPostgres, openPostgres, rex, unavailable } from './open-postgres.ts'
import { type PostgresServer, startPostgres } from '../assurance/harness/postgres-server.ts'

describe('while the synchronous standby of PostgreSQL is away', { concurrency: false, timeout: 300_000 }, () => {
  let server: PostgresServer
  before(async () => {
    server = await startPostgres()
  })
  after(() => server.end())

  /** Commits wait for a standby that does not exist; `standbyIsBack` ends that. */
  async function change(setting: string): Promise<void> {
    const sql = connectTo(server.url, { max: 1 })
    await sql.unsafe(setting)
    await sql`SELECT pg_reload_conf()`
    await sql.end()
  }
  const standbyIsAway = async ({ sql }: OpenPostgres) => {
    await change("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    await until(
      async () => (await sql`SHOW synchronous_standby_names`)[0]!['synchronous_standby_names'] === 'nobody',
      'commits wait',
    )
  }
  const standbyIsBack = () => change('ALTER SYSTEM RESET synchronous_standby_names')
  const waitingCommits = async ({ sql }: OpenPostgres) =>
    (
      await sql<
        { pid: number }[]
      >`SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND datname = current_database() ORDER BY pid`
    ).map(({ pid }) => pid)

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

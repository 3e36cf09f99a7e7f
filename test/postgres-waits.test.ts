// Every wait for PostgreSQL has an end, and leaves nothing behind that would slow down the next call.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { describe, it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { parseConnection } from '../src/store/postgres/connection-settings.ts'
import { Pool } from '../src/store/postgres/pool.ts'
import { StoreUnavailable } from '../src/store/store.ts'
import { until } from '../assurance/harness/until.ts'
import { type OpenPostgres, openPostgres } from './open-postgres.ts'
import { event } from './sample-rows.ts'

const unavailable = (message: RegExp) => (error: unknown) =>
  error instanceof StoreUnavailable && message.test(error.message)

/** A call that lasts for as long as the accounts are locked. */
const slowCall = ({ store }: OpenPostgres) => store.accounts.listAccounts()

describe('a call to PostgreSQL', { concurrency: false, timeout: 120_000 }, () => {
  it('is refused after its time when all connections stay busy; when one is free again, the next call gets it', async () => {
    await using opened = await openPostgres('pool_size=1&connect_timeout=1&statement_timeout=60000')
    const unlock = await opened.lock('LOCK TABLE accounts')
    const slow = slowCall(opened)
    await opened.untilBlocked(1)
    await assert.rejects(opened.store.ping(), unavailable(/busy/))
    await unlock()
    await slow
    for (let round = 0; round < 3; round += 1) await opened.store.ping()
  })

  it('waits until every host of several was tried, and then has the reason of each', async (context) => {
    const { timers } = context.mock
    const silent = createServer((socket) => void sockets.push(socket))
    const sockets: Socket[] = []
    await once(silent.listen(0, '127.0.0.1'), 'listening')
    const { port } = silent.address() as AddressInfo
    const pool = new Pool(parseConnection(`postgres://127.0.0.1:${port},127.0.0.1:${port},127.0.0.1:${port}/none`))
    context.after(async () => {
      timers.reset()
      await pool.end()
      for (const socket of sockets) socket.destroy()
      silent.close()
    })
    timers.enable({ apis: ['setTimeout'] })
    const call = assert.rejects(
      pool.read((sql) => sql`SELECT 1`),
      unavailable(/^Cannot connect to PostgreSQL at (?:[\d.:]+: no answer within 2000 ms(?:; |$)){3}/),
    )
    for (let tried = 1; tried <= 3; tried += 1) {
      // The driver connects in a later turn.
      await setImmediate()
      timers.tick(1)
      while (sockets.length < tried) await setImmediate()
      timers.tick(2000)
    }
    await call
  })

  const kinds: [kind: string, mayWait: number, call: (opened: OpenPostgres) => Promise<unknown>][] = [
    ['read', 100, ({ store }) => store.ping()],
    // Of two connections, writes may use one.
    ['write', 50, ({ store }) => store.accounts.appendEvent(event('acct'))],
  ]
  for (const [kind, mayWait, call] of kinds) {
    it(`is refused at once when 50 wait for each connection already; those who wait are all served (a ${kind})`, async () => {
      await using opened = await openPostgres('pool_size=2&connect_timeout=60&statement_timeout=60000')
      const unlock = await opened.lock('LOCK TABLE accounts')
      const slow = [slowCall(opened), slowCall(opened)]
      await opened.untilBlocked(2)
      const refused: unknown[] = []
      const others = Array.from({ length: 1000 }, () =>
        call(opened).catch((error: unknown) => void refused.push(error)),
      )
      await opened.untilBlocked(2)
      const refusedAtOnce = refused.length
      await unlock()
      await Promise.all([...slow, ...others])
      assert.equal(refusedAtOnce, others.length - mayWait)
      assert.equal(refused.length, refusedAtOnce)
      assert.ok(refused.every(unavailable(/busy/)))
    })
  }

  it('is ended by the server itself when it takes too long, so that no statement goes on without its caller', async () => {
    await using opened = await openPostgres('statement_timeout=300')
    const unlock = await opened.lock('LOCK TABLE accounts')
    await assert.rejects(slowCall(opened), unavailable(/statement timeout/))
    await opened.untilBlocked(0)
    await unlock()
    await slowCall(opened)
  })

  it('fails when the server does not answer in time, is not tried a second time, and costs only its own connection', async () => {
    await using opened = await openPostgres('statement_timeout=1000')
    const { store, proxy } = opened
    await Promise.all([store.ping(), store.ping()])
    await until(async () => store.connections()!.idle === 2, 'two connections are open')
    proxy.holdNextAnswer()
    await assert.rejects(store.ping(), unavailable(/no answer within 1500 ms/))
    await until(async () => store.connections()!.idle === 1, 'the other connection answers, and is free again')
    const { made } = proxy.connections()
    await store.ping()
    assert.equal(proxy.connections().made, made)
  })

  it('is refused when the store is closed, at once where it waits and ever after, and no connection is left', async () => {
    await using opened = await openPostgres('pool_size=1&connect_timeout=60&statement_timeout=60000')
    const { store, proxy } = opened
    const unlock = await opened.lock('LOCK TABLE accounts')
    const running = assert.rejects(slowCall(opened), unavailable(/./))
    await opened.untilBlocked(1)
    const waiting = Array.from({ length: 5 }, () => assert.rejects(store.ping(), unavailable(/closed/)))
    await store.close()
    await Promise.all([running, ...waiting])
    await unlock()
    await assert.rejects(store.ping(), unavailable(/closed/))
    await until(async () => proxy.connections().open === 0, 'every connection is closed')
  })

  it('leaves no connection that was being opened for it when the store was closed', async () => {
    await using opened = await openPostgres('pool_size=2&connect_timeout=60&statement_timeout=60000')
    const { store, proxy } = opened
    const unlock = await opened.lock('LOCK TABLE accounts')
    const slow = slowCall(opened)
    await opened.untilBlocked(1)
    const held = proxy.holdNextAnswer()
    const refused = assert.rejects(store.ping(), unavailable(/closed/))
    await held.arrived
    const closing = store.close()
    await unlock()
    await Promise.all([slow, closing, refused])
    held.release()
    await until(async () => proxy.connections().open === 0, 'every connection is closed')
  })

  it('shares at most pool_size connections with all the others', async () => {
    await using opened = await openPostgres('pool_size=3&connect_timeout=60&statement_timeout=60000')
    const unlock = await opened.lock('LOCK TABLE accounts')
    const calls = Array.from({ length: 30 }, () => slowCall(opened))
    await opened.untilBlocked(3)
    assert.equal((await opened.backends()).length, 3)
    await unlock()
    await Promise.all(calls)
    assert.equal((await opened.backends()).length, 3)
  })
})

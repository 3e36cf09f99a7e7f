// What a service still writes when it stops, and what it does not wait for.
import assert from 'node:assert/strict'
import { existsSync, readdirSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { describe, it } from 'node:test'
import { sqlite } from '../harness/databases/engines.ts'
import { FINISH_WITHIN_MS, LAST_REQUEST_MS } from '../../src/http/lifecycle.ts'
import { startPetstore } from '../harness/harness.ts'
import { petstore as petstoreCommand } from '../harness/programs/in-process-command.ts'
import { get, list, LIVEZ, RawConnection, REX, untilRefused } from '../harness/connections/raw-http.ts'
import {
  ask,
  beginCreate,
  close,
  connectionsTo,
  connectToFirstProcess,
  connectToWorker,
} from '../harness/connections/worker-connection.ts'

function messagesOf(stdout: string): string[] {
  const lines = stdout.trimEnd().split('\n')
  return lines.map((line) => (JSON.parse(line) as { msg: string }).msg)
}

describe('A service that stops', () => {
  for (const workers of [1, 2]) {
    it(`has written the calls of its last moment, of every process (workers: ${workers})`, async () => {
      await using database = await sqlite.newEmptyDatabase()
      const env = { PETSTORE_WORKERS: String(workers), PETSTORE_LOG_LEVEL: 'notice' }
      const petstore = await startPetstore({ database: database.url, env })
      const connections = workers === 1 ? connectionsTo(petstore, 1) : [await connectToWorker(petstore.url)]
      assert.deepEqual(await ask(connections, list(petstore.key)), [200])
      close(connections)
      assert.equal(await petstore.stop(), true)
      await using again = await startPetstore({ database: database.url })
      const counts = await again.store.accounts.usageSince(petstore.account.id, 0)
      assert.deepEqual(
        counts.map(({ operation, calls }) => [operation, calls]),
        [['listPets', 1]],
      )
      assert.deepEqual(
        petstore.logged.filter(({ level }) => level === 'error'),
        [],
        'and no process was missed',
      )
    })
  }

  for (const [where, connect] of [
    ['the first process', connectToFirstProcess],
    ['a worker', connectToWorker],
  ] as const) {
    it(`accepts no connection in any process while ${where} finishes a request`, async () => {
      await using database = await sqlite.newEmptyDatabase()
      await using petstore = await startPetstore({ database: database.url, env: { PETSTORE_WORKERS: '2' } })
      using running = await connect(petstore.url)
      await beginCreate(running, petstore.key)
      const stopped = petstore.stop()
      await untilRefused(petstore.url)
      running.send(REX)
      assert.equal((await running.answer()).status, 201)
      assert.equal(await stopped, true)
    })
  }

  it('answers a request that comes on an open connection just after the listener has closed', async ({ mock }) => {
    await using petstore = await startPetstore()
    using fresh = new RawConnection(petstore.url)
    using next = new RawConnection(petstore.url)
    // Connections are accepted in their order: the one before has been, too, and nothing was sent on it.
    await next.ask(LIVEZ)
    // The quarter of a second ends when the test says so, however slow the machine is.
    const held = new Map<number, () => void>()
    const { setTimeout } = globalThis
    mock.method(globalThis, 'setTimeout', (fire: () => void, ms: number) =>
      [LAST_REQUEST_MS, FINISH_WITHIN_MS].includes(ms) ? void held.set(ms, fire) : setTimeout(fire, ms),
    )
    const stopped = petstore.stop()
    await untilRefused(petstore.url)
    assert.equal((await fresh.ask(get('/v1/pets'))).status, 401)
    await fresh.closed()
    held.get(LAST_REQUEST_MS)!()
    await next.closed()
    assert.equal(await stopped, true)
  })

  it('answers on its admin port until its last request is finished: live, and not ready', async () => {
    await using petstore = await startPetstore({ env: { PETSTORE_ADMIN_PORT: '0' } })
    const request = list(petstore.key)
    using running = new RawConnection(petstore.url)
    // Asked for before the stop, and sent to its end only later.
    running.send(LIVEZ + request.slice(0, -2))
    assert.equal((await running.answer()).status, 200)
    const stopped = petstore.stop()
    const statusOf = async (path: string) => (await fetch(petstore.adminUrl + path)).status
    assert.deepEqual([await statusOf('/livez'), await statusOf('/readyz'), await statusOf('/metrics')], [200, 503, 200])
    running.send('\r\n')
    assert.equal((await running.answer()).status, 200)
    assert.equal(await stopped, true)
    await assert.rejects(fetch(`${petstore.adminUrl}/livez`), 'and no longer')
  })

  it('closes its database even if the last calls cannot be written, and says so', async ({ mock }) => {
    await using petstore = await startPetstore()
    await petstore.call('/pets')
    const write = mock.method(petstore.store.accounts, 'recordUsage', () => Promise.reject(new Error('away')))
    const closing = mock.method(petstore.store, 'close')
    assert.equal(await petstore.stop(), true)
    assert.ok(write.mock.callCount() > 0)
    assert.equal(closing.mock.callCount(), 1)
    assert.ok(petstore.logged.some(({ msg }) => String(msg).startsWith('the last usage counts and failed requests')))
  })
})

describe('A service that cannot start, because a port is in use', () => {
  for (const [flag, workers] of [
    ['--port', '1'],
    ['--admin-port', '1'],
    ['--port', '2'],
  ] as const) {
    it(`closes its database, and leaves nothing but its file (${flag}, workers: ${workers})`, async () => {
      await using other = await startPetstore()
      await using database = await sqlite.newEmptyDatabase()
      const path = database.url.slice('sqlite:'.length)
      const env = { PORT: '0', DATABASE_URL: database.url, PETSTORE_WORKERS: workers }
      const { code, stderr } = await petstoreCommand(['serve', flag, new URL(other.url).port], { env })
      assert.equal(code, 1)
      assert.ok(stderr.endsWith(`it is in use; stop the other program or choose another with ${flag}.\n`), stderr)
      assert.deepEqual(readdirSync(dirname(path)), [basename(path)])
    })
  }
})

describe('petstore serve, told to stop while it starts', () => {
  it('does not begin its chores when it gives up waiting for the database', async () => {
    const { code, stdout } = await petstoreCommand(['serve'], {
      env: { PORT: '0', DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' },
      stopSignal: () => Promise.resolve('SIGTERM'),
    })
    assert.equal(code, 0)
    assert.deepEqual(messagesOf(stdout), [
      'waiting for the database; requests are answered 503',
      'listening',
      'stopping: finishing open requests',
      'stopped',
    ])
  })

  it('by Ctrl-C has handled the signal from its first moment on: it starts, stops in order without a drain, and ends with 0', async () => {
    await using database = await sqlite.newEmptyDatabase()
    const path = database.url.slice('sqlite:'.length)
    const { code, stdout } = await petstoreCommand(['serve'], {
      env: { PORT: '0', DATABASE_URL: database.url, PETSTORE_DRAIN_SECONDS: '60' },
      stopSignal() {
        assert.ok(!existsSync(path), 'nothing was begun')
        return Promise.resolve('SIGINT')
      },
    })
    assert.equal(code, 0)
    assert.deepEqual(messagesOf(stdout), ['listening', 'stopping: finishing open requests', 'stopped'])
    assert.deepEqual(readdirSync(dirname(path)), [basename(path)])
  })
})

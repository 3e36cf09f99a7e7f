// With workers the service is still one service: to its callers, its operator and its people. What one process has added, every
// other shows (test/api/fresh-pages.test.ts).
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import connectTo from 'postgres'
import { hashPassword } from '../../src/accounts/passwords.ts'
import { LINKS_BY_ADDRESS } from '../../src/accounts/throttle.ts'
import { petstore as petstoreCommand } from '../harness/programs/in-process-command.ts'
import { ConsoleClient, signedInManager } from '../harness/connections/console-client.ts'
import { describeService, makeKey, PASSWORD, startPetstore } from '../harness/harness.ts'
import { postgres, withParameters } from '../harness/databases/engines.ts'
import { get as getOf, list, LIVEZ, RawConnection } from '../harness/connections/raw-http.ts'
import { until } from '../harness/until.ts'
import {
  ask,
  askForAll,
  close,
  connectionsTo,
  connectToFirstProcess,
  connectToWorker,
} from '../harness/connections/worker-connection.ts'

const TWO = { PETSTORE_WORKERS: '2' }

async function signedInAs({ url }: { url: string }, { email }: { email: string }): Promise<ConsoleClient> {
  const client = new ConsoleClient(url)
  await client.signIn(email, PASSWORD)
  return client
}

/** The bytes that send a form as this client would, for a connection of one's choice. */
async function postOf(client: ConsoleClient, page: string, action: string, fields: Record<string, string> = {}) {
  const form = new URLSearchParams({ ...(await client.hiddenFields(page, action)), ...fields }).toString()
  return `POST ${action} HTTP/1.1\r\nHost: localhost\r\nCookie: ${client.cookie}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${form.length}\r\n\r\n${form}`
}

describeService(
  'Several workers',
  (service) => {
    for (const where of ['the first process', 'a worker']) {
      it(`refuse a role that was taken away and a removed account on every connection, also where a worker does it (${where})`, async () => {
        const petstore = service()
        const manager = await signedInManager(petstore)
        const { account, key } = await makeKey(petstore)
        assert.equal(await petstore.accounts.setRole(account, 'manager', 'command line'), undefined)
        const other = await signedInAs(petstore, account)
        const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\nCookie: ${other.cookie}\r\n\r\n`
        const connections = connectionsTo(petstore)
        await askForAll(connections, get('/people'), 200)
        using changing = await (where === 'a worker' ? connectToWorker : connectToFirstProcess)(petstore.url)
        const page = `/people/${account.id}`
        await askForAll([changing], await postOf(manager, page, page, { role: 'member' }), 303)
        await askForAll(connections, get('/people'), 403)
        await askForAll(connections, list(key), 200)
        await askForAll([changing], await postOf(manager, `${page}/remove`, `${page}/remove`), 303)
        await askForAll(connections, get('/animals'), 303)
        await askForAll(connections, list(key), 401)
        close(connections)
      })

      it(`refuse a key from its revocation on, on every connection, also where a worker revokes it (${where})`, async () => {
        const petstore = service()
        const { account, apiKey, key } = await makeKey(petstore)
        const client = await signedInAs(petstore, account)
        const page = `/keys/${apiKey.id}/revoke`
        const revoke = await postOf(client, page, page)
        const connections = connectionsTo(petstore)
        await askForAll(connections, list(key), 200)
        using revoking = await (where === 'a worker' ? connectToWorker : connectToFirstProcess)(petstore.url)
        await askForAll([revoking], revoke, 303)
        await askForAll(connections, list(key), 401)
        close(connections)
      })
    }

    it('take a form of each other, and make one key of it where it is sent twice, to two of them', async () => {
      const petstore = service()
      const { account } = await makeKey(petstore)
      const client = await signedInAs(petstore, account)
      const form = await postOf(client, '/keys/new', '/keys', { name: 'once only', expires: '' })
      using toWorker = await connectToWorker(petstore.url)
      using toFirst = await connectToFirstProcess(petstore.url)
      toWorker.send(form)
      const made = await toWorker.answer()
      assert.equal(made.status, 200)
      assert.match(made.body, /pets_test_[0-9A-Za-z]{36}/)
      toFirst.send(form)
      const again = await toFirst.answer()
      assert.deepEqual([again.status, again.headers.get('location')], [303, '/keys?made=yes'])
      assert.equal((await petstore.store.accounts.listKeys(account.id)).length, 2)
    })
  },
  // Three processes: what a worker sends to all others must reach another worker too.
  { env: { PETSTORE_WORKERS: '3' } },
)

describe('Workers', () => {
  it('have written their calls before another process shows them to people, however long the database takes', async () => {
    await using database = await postgres.newEmptyDatabase()
    await using petstore = await startPetstore({ database: database.url, env: TWO })
    const { account, key } = await makeKey(petstore)
    const client = await signedInAs(petstore, account)
    using toWorker = await connectToWorker(petstore.url)
    using toFirst = await connectToFirstProcess(petstore.url)
    const sql = connectTo(database.url, { max: 1 })
    let calls = 0
    for (const [caller, reader] of [
      [toWorker, toFirst],
      [toFirst, toWorker],
    ] as const) {
      assert.deepEqual(await ask([caller], list(key)), [200])
      calls += 1
      await sql.begin(async (transaction) => {
        await transaction`LOCK TABLE usage_counts IN EXCLUSIVE MODE`
        reader.send(`GET /keys HTTP/1.1\r\nHost: localhost\r\nCookie: ${client.cookie}\r\n\r\n`)
        await setTimeout(400)
      })
      assert.match((await reader.answer()).body, new RegExp(`data-label="Calls, 7 days">${calls}<`))
    }
    await sql.end()
  })

  it('share the connections to PostgreSQL that one process would have', async () => {
    await using database = await postgres.newEmptyDatabase()
    const url = withParameters(database.url, 'pool_size=4')
    await using petstore = await startPetstore({ database: url, env: TWO, chores: false })
    const sql = connectTo(database.url, { max: 1 })
    const { calls } = await sql.begin(async (transaction) => {
      await transaction`LOCK TABLE accounts`
      const waiting = Array.from({ length: 3 }, () => petstore.store.accounts.listAccounts())
      await until(() => petstore.store.connections()!.inUse === 2, 'two connections are used')
      assert.equal(petstore.store.connections()!.waiting, 1)
      return { calls: waiting }
    })
    await Promise.all([...calls, sql.end()])
  })

  it('count for themselves: each allows the rate limit, its share of the tries, and as many connections as one process', async () => {
    const limits = { PETSTORE_RATE_LIMIT: '3/600', PETSTORE_MAX_CONNECTIONS: '4' }
    await using petstore = await startPetstore({ env: { ...TWO, ...limits } })
    const wrongLink = getOf(`/link?token=${'x'.repeat(43)}`)
    const open: RawConnection[] = []
    for (const connect of [connectToWorker, connectToFirstProcess]) {
      const connection = await connect(petstore.url)
      open.push(connection)
      const told: unknown[] = []
      for (let request = 0; request < 4; request += 1) {
        connection.send(list(petstore.key))
        const { status, headers } = await connection.answer()
        told.push([status, /r=\d+/.exec(headers.get('ratelimit')!)?.[0]])
      }
      assert.deepEqual(told, [
        [200, 'r=2'],
        [200, 'r=1'],
        [200, 'r=0'],
        [429, 'r=0'],
      ])
      for (let tries = 0; tries < LINKS_BY_ADDRESS.tries / 2; tries += 1)
        assert.deepEqual(await ask([connection], wrongLink), [404])
      assert.deepEqual(await ask([connection], wrongLink), [429])
    }
    // Eight in all; what the service was started with may keep some of them.
    await until(async () => {
      const next = new RawConnection(petstore.url)
      if ((await next.ask(LIVEZ)).status === 200) open.push(next)
      return open.length === 6
    }, 'they keep more connections than one process would')
    const beyond = connectionsTo(petstore, 10)
    await until(() => beyond.filter(({ socket }) => socket.destroyed).length >= 8, 'but not more than two would')
    await askForAll(open, LIVEZ, 200)
    close([...open, ...beyond])
  })

  it('have one page of metrics with the sum of all, and hash one password at a time each', async () => {
    await using petstore = await startPetstore({ env: { ...TWO, PETSTORE_ADMIN_PORT: '0' } })
    const { key } = petstore
    // One of them for certain to the worker.
    const connections = [await connectToWorker(petstore.url), ...connectionsTo(petstore, 15)]
    await ask(connections, list(key))
    let page = ''
    await until(async () => {
      page = await (await fetch(`${petstore.adminUrl}/metrics`)).text()
      return /^petstore_connections 16$/m.test(page)
    }, 'the connections of both are counted')
    assert.match(page, /^petstore_requests_total\{operation="listPets",status="200"\} 16$/m)
    assert.match(page, /^petstore_ready 1$/m)
    assert.match(page, /^petstore_build_info\{version="[\d.]+"\} 1$/m)

    close(connections)

    // They share the cores and the memory.
    const leave = new AbortController()
    const [running, waiting] = [hashPassword(PASSWORD), hashPassword(PASSWORD, leave.signal)]
    leave.abort(new Error('the client left'))
    await assert.rejects(waiting, /the client left/)
    await running
  })

  it('are refused for a database in memory, with the way out', async () => {
    const { code, stderr } = await petstoreCommand(['serve', '--workers', '2'], {
      env: { PORT: '0', DATABASE_URL: 'sqlite::memory:' },
    })
    assert.deepEqual(
      [code, stderr],
      [1, 'petstore: A database in memory belongs to one process. Use --workers 1, or a file with --database.\n'],
    )
  })
})

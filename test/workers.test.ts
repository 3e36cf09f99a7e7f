// With workers the service is still one service: to its callers, its operator and its people. What one process has added, every
// other shows (test/fresh-pages.test.ts).
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import connectTo from 'postgres'
import { hashPassword } from '../src/accounts/passwords.ts'
import { SIGN_IN_BY_ACCOUNT_AND_ADDRESS, SIGN_UP_BY_ADDRESS } from '../src/accounts/throttle.ts'
import { Folder, serve } from './command.ts'
import { petstore as petstoreCommand } from './in-process-command.ts'
import { ConsoleClient, signedInManager } from './console-client.ts'
import { describeService, makeKey, PASSWORD, startPetstore } from './harness.ts'
import { postgres, sqlite, withParameters } from '../assurance/harness/engines.ts'
import { list, LIVEZ, RawConnection } from '../assurance/harness/raw-http.ts'
import { until } from '../assurance/harness/until.ts'
import { ask, askForAll, close, connectionsTo, connectToFirstProcess, connectToWorker } from './worker-connection.ts'

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
    it('forget the wrong passwords of a person whose right one a worker has seen', async () => {
      const petstore = service()
      const { account } = await makeKey(petstore)
      const client = new ConsoleClient(petstore.url)
      const signIn = await postOf(client, '/sign-in', '/sign-in', { email: account.email, password: PASSWORD })
      const tryWrong = async () => (await client.signIn(account.email, 'wrong horse battery')).status
      for (let tries = 1; tries < SIGN_IN_BY_ACCOUNT_AND_ADDRESS.tries; tries += 1) assert.equal(await tryWrong(), 400)
      using toWorker = await connectToWorker(petstore.url)
      await askForAll([toWorker], signIn, 303)
      assert.deepEqual([await tryWrong(), await tryWrong()], [400, 400])
    })

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
    await using database = await postgres.newDatabase()
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
    await using database = await postgres.newDatabase()
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

  it('share the throttles: sign-ups are counted together, and a password that was not compared is not', async () => {
    await using database = await sqlite.newDatabase()
    await using petstore = await startPetstore({ database: database.url, env: TWO })
    const client = new ConsoleClient(petstore.url)
    using toWorker = await connectToWorker(petstore.url)
    const post = async (request: string) => (await ask([toWorker], request))[0]
    const signUp = await postOf(client, '/sign-up', '/sign-up', { email: 'x@example.com', password: 'short' })
    for (let tries = 0; tries < SIGN_UP_BY_ADDRESS.tries; tries += 1) assert.equal(await post(signUp), 400)
    using toFirst = await connectToFirstProcess(petstore.url)
    assert.deepEqual(await ask([toWorker, toFirst], signUp), [429, 429])

    const { email } = petstore.account
    const signIn = await postOf(client, '/sign-in', '/sign-in', { email, password: 'wrong horse battery' })
    for (let tries = 1; tries < SIGN_IN_BY_ACCOUNT_AND_ADDRESS.tries; tries += 1) assert.equal(await post(signIn), 400)
    using db = new DatabaseSync(database.url.slice('sqlite:'.length), { timeout: 10_000 })
    db.exec('ALTER TABLE accounts RENAME TO away')
    assert.equal(await post(signIn), 500)
    db.exec('ALTER TABLE away RENAME TO accounts')
    assert.deepEqual([await post(signIn), await post(signIn)], [400, 429])
  })

  it('share the rate limit: an account gets exactly as many requests as it allows, on all connections together', async () => {
    await using petstore = await startPetstore({ env: { ...TWO, PETSTORE_RATE_LIMIT: '20/600' } })
    const connections = connectionsTo(petstore, 40)
    const statuses = await ask(connections, list(petstore.key))
    close(connections)
    assert.deepEqual(
      [200, 429].map((status) => statuses.filter((each) => each === status).length),
      [20, 20],
    )
  })

  it('have one page of metrics with the sum of all, share the rehearsed delays, and hash one password at a time each', async () => {
    await using petstore = await startPetstore({ env: { ...TWO, PETSTORE_ADMIN_PORT: '0' } })
    const { url, key } = petstore
    const connections = connectionsTo(petstore)
    await ask(connections, list(key))
    const page = await (await fetch(`${petstore.adminUrl}/metrics`)).text()
    assert.match(page, /^petstore_requests_total\{operation="listPets",status="200"\} 16$/m)
    assert.match(page, /^petstore_connections 16$/m)
    assert.match(page, /^petstore_ready 1$/m)
    assert.match(page, /^petstore_build_info\{version="[\d.]+"\} 1$/m)

    connections.push(await connectToWorker(url), await connectToFirstProcess(url), ...connectionsTo(petstore, 83))
    await ask(connections, LIVEZ)
    const delayed = list(key).replace('\r\n\r\n', '\r\nPetstore-Rehearse: delay=10s\r\n\r\n')
    for (const connection of connections) connection.send(delayed)
    const answers = await Promise.all(connections.map((connection) => connection.answer(60_000)))
    close(connections)
    const answered = (expected: number) => answers.filter(({ status }) => status === expected).length
    assert.deepEqual([answered(200), answered(503)], [100, 1])
    assert.equal(answers.find(({ status }) => status === 503)?.headers.get('retry-after'), '1')

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

  it('share the limit of connections: none is refused below it, and hardly one more is let in', async () => {
    const most = 400
    await using folder = await Folder.create()
    const served = await serve(folder, { env: { PETSTORE_WORKERS: '4', PETSTORE_MAX_CONNECTIONS: String(most) } })
    const isOpen = ({ socket }: RawConnection) => !socket.destroyed
    const allowed = connectionsTo(served, most)
    await askForAll(allowed, LIVEZ, 200)
    const more = connectionsTo(served, most)
    await until(() => more.filter(isOpen).length <= most / 20, 'hardly one is open beyond the limit')
    assert.ok(allowed.every(isOpen))
    const line = served.lines.find(({ msg }) => String(msg).startsWith('connections are refused'))
    assert.equal(line?.['maxConnections'], most)
    close([...allowed, ...more])
    await until(async () => {
      const next = connectionsTo(served, most)
      const answers = await ask(next, LIVEZ).finally(() => close(next))
      return answers.every((status) => status === 200)
    }, 'there is room again')
  })

  it('are not more than the limit of connections in one great rush either', async () => {
    await using folder = await Folder.create()
    const served = await serve(folder, { env: { PETSTORE_WORKERS: '4', PETSTORE_MAX_CONNECTIONS: '400' } })
    const rush = connectionsTo(served, 1000)
    const open = () => rush.filter(({ socket }) => !socket.destroyed).length
    await until(() => open() <= 420, 'hardly one is open beyond the limit')
    await setTimeout(500)
    assert.ok(open() >= 400, `${open()} are open`)
    close(rush)
  })
})

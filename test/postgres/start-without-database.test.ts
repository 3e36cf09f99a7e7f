// The service starts while its database is unavailable: it is live, not ready, and becomes ready by itself.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { Folder, makeKey, serve, type Served } from '../harness/programs/command.ts'
import { startCuttingProxy } from '../harness/databases/cutting-proxy.ts'
import { askPostgres } from '../harness/databases/ask-postgres.ts'
import { postgres } from '../harness/databases/engines.ts'
import { freePort } from '../harness/connections/free-port.ts'
import { until } from '../harness/until.ts'
import { petstore } from '../harness/programs/in-process-command.ts'

const status = async ({ url }: Served, path: string) => (await fetch(url + path)).status

const isReady = (served: Served) => until(async () => (await status(served, '/readyz')) === 200, 'the service is ready')

const messages = ({ lines }: Served) => lines.filter(({ level }) => level !== 'info').map(({ msg }) => msg)

describe('petstore serve, while the database is unavailable', { concurrency: 3 }, () => {
  it('is live and not ready, refuses operations with 503, says so once, and is ready when the database is there', async () => {
    await using database = await postgres.newEmptyDatabase()
    await using proxy = await startCuttingProxy(database.url)
    await using folder = await Folder.create()
    const { key } = await makeKey(folder, { DATABASE_URL: database.url })
    proxy.goAway()
    const served = await serve(folder, { env: { DATABASE_URL: proxy.url } })
    const list = () => fetch(`${served.url}/v1/pets`, { headers: { Authorization: `Bearer ${key}` } })
    const refused = await list()
    assert.deepEqual([refused.status, ((await refused.json()) as { code: string }).code], [503, 'service_unavailable'])
    assert.match(refused.headers.get('retry-after') ?? '', /^[1-9]$/)
    assert.deepEqual(
      [await status(served, '/livez'), await status(served, '/readyz'), await status(served, '/')],
      [200, 503, 200],
    )
    const { made } = proxy.connections()
    await until(async () => proxy.connections().made > made + 1, 'it tries again')
    assert.equal(messages(served)[0], 'waiting for the database; requests are answered 503')
    const { level, reason } = served.lines[0]!
    assert.equal(level, 'error')
    assert.ok(String(reason).includes(new URL(proxy.url).host), 'the line says which server and why')
    assert.equal(messages(served)[1], 'listening')
    assert.equal(
      messages(served).filter((message) => String(message).includes('database')).length,
      2,
      'one line, and one for the refused request',
    )

    proxy.comeBack()
    await isReady(served)
    assert.equal((await list()).status, 200)
    assert.ok(messages(served).includes('database found; ready'))
    assert.ok(!messages(served).some((message) => String(message).includes('purged')))
  })

  it('exits with the reason if the database turns out to be unusable, answers no more, and leaves no connection', async () => {
    await using database = await postgres.newEmptyDatabase()
    await askPostgres(database.url, 'CREATE TABLE pets (whatever INTEGER)')
    await using proxy = await startCuttingProxy(database.url)
    proxy.goAway()
    const port = await freePort()
    const ended = petstore(['serve', '--port', String(port)], { env: { DATABASE_URL: proxy.url } })
    const live = () => fetch(`http://127.0.0.1:${port}/livez`).then(({ ok }) => ok)
    await until(() => live().catch(() => false), 'the service is live')
    proxy.comeBack()
    const { code, stderr } = await ended
    assert.equal(code, 1)
    assert.match(stderr, /tables of another program/)
    await assert.rejects(live())
    await until(async () => proxy.connections().open === 0, 'every connection is closed')
  })

  it('waits for another process that holds the lock of the file for long', async () => {
    await using folder = await Folder.create()
    const file = join(folder.path, 'petstore.db')
    const env = { DATABASE_URL: `sqlite:${file}` }
    await folder.run(['migrate'], { env })
    const holder = new DatabaseSync(file)
    holder.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
    const served = await serve(folder, { env })
    assert.deepEqual([await status(served, '/livez'), await status(served, '/readyz')], [200, 503])
    // After the next attempt has begun, 0.25 s later: it must not block the event loop for 10 s, as the first one may.
    await setTimeout(500)
    assert.equal((await fetch(`${served.url}/livez`, { signal: AbortSignal.timeout(5000) })).status, 200)
    holder.exec('ROLLBACK')
    holder.close()
    await isReady(served)
  })
})

// The sync of a create: requests are served meanwhile, and what a disk that fails or hangs does to them (SQLite).
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { copyFile, rm, stat, writeFile } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { freePort } from '../harness/connections/free-port.ts'
import { RawConnection, REX } from '../harness/connections/raw-http.ts'
import { until } from '../harness/until.ts'
import type { Ended } from '../harness/programs/processes.ts'
import { Folder, makeKey, messages, type Served, serve } from '../harness/programs/command.ts'
import { expectError, startPetstore } from '../harness/harness.ts'
import { beginCreate } from '../harness/connections/worker-connection.ts'

/** Fails unless a sync that failed has left the database unclosed, for the next start to recover. */
async function assertNotClosed({ path }: Folder): Promise<void> {
  assert.ok((await stat(join(path, 'data/petstore.db-wal'))).size > 0)
}

/** Fails unless the service has exited because of its disk. */
async function assertDiskFailed({ ended }: Served, folder: Folder): Promise<void> {
  const { code, stderr } = await ended
  assert.deepEqual([code, stderr], [1, 'petstore: the disk did not sync: EIO: i/o error, fdatasync\n'])
  await assertNotClosed(folder)
}

async function assertKilled({ code, signal }: Ended, folder: Folder): Promise<void> {
  assert.deepEqual([code, signal], [null, 'SIGKILL'])
  await assertNotClosed(folder)
}

describe('A create on SQLite', { concurrency: 2 }, () => {
  it('is refused when the disk fails to sync; the service exits, and the next start has all that was answered', async () => {
    await using folder = await Folder.create()
    const { served, add, list, allWritten, order } = await serveOnFaultyDisk(folder)
    assert.equal((await add('kept')).status, 201)
    await allWritten(1)
    await writeFile(order, 'fail')
    await expectError(await add('unknown'), 'service_unavailable')
    await assertDiskFailed(served, folder)
    assert.ok(messages(served).includes('exiting; the next start recovers the database'))
    const again = await serve(folder)
    // Without its log, which chores may write to meanwhile.
    await copyFile(join(folder.path, 'data/petstore.db'), join(folder.path, 'alone.db'))
    using alone = new DatabaseSync(join(folder.path, 'alone.db'))
    const names = alone.prepare('SELECT name FROM pets').all()
    assert.deepEqual(names.at(0)?.['name'], 'kept', 'the log was copied before anything is answered')
    assert.ok((await list(again.url)).includes('kept'))
  })

  for (const end of ['a stop', 'a failed sync', 'a kill'] as const) {
    it(`is accepted at once after ${end} and a restart beside a process that reads for long, such as a backup`, async () => {
      await using folder = await Folder.create()
      const PORT = String(await freePort())
      const { served, add, list, allWritten, order } = await serveOnFaultyDisk(folder, { PORT })
      assert.equal((await add('kept')).status, 201)
      using reader = new DatabaseSync(join(folder.path, 'data/petstore.db'))
      reader.exec('BEGIN')
      reader.prepare('SELECT count(*) FROM pets').get()
      assert.equal((await add('kept too')).status, 201)
      if (end === 'a failed sync') {
        await allWritten(2)
        await writeFile(order, 'fail')
        await expectError(await add('unknown'), 'service_unavailable')
        await rm(order)
      } else served.child.kill(end === 'a stop' ? 'SIGTERM' : 'SIGKILL')
      await served.ended
      const again = await serve(folder, { env: { PORT } })
      assert.deepEqual(
        messages(again).filter((message) => message.startsWith('waiting')),
        [],
      )
      assert.equal((await fetch(`${again.url}/readyz`)).status, 200)
      assert.equal((await add('later')).status, 201)
      const found = await list(again.url)
      assert.ok(['later', 'kept too', 'kept'].every((name) => found.includes(name)))
      assert.equal(reader.prepare('SELECT count(*) AS pets FROM pets').get()!['pets'], 1)
    })
  }

  it('is refused when the disk fails to sync during a drain; the service exits at once, and does not close the database', async () => {
    await using folder = await Folder.create()
    const { served, add, allWritten, order } = await serveOnFaultyDisk(folder, { PETSTORE_DRAIN_SECONDS: '30' })
    assert.equal((await add('kept')).status, 201)
    await allWritten(1)
    served.child.kill('SIGTERM')
    await until(() => messages(served).includes('draining: not ready, still serving'), 'it drains')
    await writeFile(order, 'fail')
    await expectError(await add('unknown'), 'service_unavailable')
    await assertDiskFailed(served, folder)
  })

  it('is refused when the disk fails to sync during a stop, which then kills the process: an exit would close the database', async () => {
    await using folder = await Folder.create()
    const { served, add, allWritten, key, order } = await serveOnFaultyDisk(folder)
    assert.equal((await add('kept')).status, 201)
    await allWritten(1)
    using running = new RawConnection(served.url)
    await beginCreate(running, key)
    served.child.kill('SIGTERM')
    await until(() => messages(served).includes('stopping: finishing open requests'), 'it stops')
    await writeFile(order, 'fail')
    running.send(REX)
    assert.equal((await running.answer()).status, 503)
    await assertKilled(await served.ended, folder)
  })

  it('is never accepted where the first sync of a new database fails: the start ends by a kill, and the database is not closed', async () => {
    await using folder = await Folder.create()
    const { order, env } = faultyDisk(folder)
    await writeFile(order, 'fail')
    const ended = await folder.run(['serve'], { env: { ...env, PORT: '0' } })
    await assertKilled(ended, folder)
    assert.match(ended.stdout, /exiting; the next start recovers the database/)
  })

  it('is refused in time while a sync hangs: not ready, but alive, and all recovers by itself', async () => {
    await using folder = await Folder.create()
    const { served, add, list, allWritten, order } = await serveOnFaultyDisk(folder)
    assert.equal((await add('first')).status, 201)
    await allWritten(1)
    await writeFile(order, 'hang')
    const started = performance.now()
    await expectError(await add('waiting'), 'service_unavailable')
    assert.ok(performance.now() - started < 9000)
    assert.equal((await fetch(`${served.url}/readyz`)).status, 503)
    assert.equal((await fetch(`${served.url}/livez`)).status, 200)
    await rm(order)
    await until(async () => (await fetch(`${served.url}/readyz`)).status === 200, 'it is ready')
    assert.equal((await add('later')).status, 201)
    assert.equal((await fetch(`${served.url}/readyz`)).status, 200)
    // The one that was refused is there, unless the sync that hung was that of the usage of the first, behind which it was never begun.
    const found = await list(served.url)
    assert.deepEqual(
      found.filter((name) => name !== 'waiting'),
      ['later', 'first'],
    )
    assert.ok(found.length <= 3)
  })

  it('holds up no answer that is cached while its sync hangs', async ({ mock }) => {
    const { fdatasync } = fs
    let held: (() => void)[] | undefined
    const sync = (file: number, done: fs.NoParamCallback) =>
      held === undefined ? fdatasync(file, done) : void held.push(() => fdatasync(file, done))
    const mocked = mock.method(fs, 'fdatasync', sync)
    syncBuiltinESMExports()
    // Without chores: the usage that they write makes what is cached old.
    await using petstore = await startPetstore({ chores: false })
    mocked.mock.restore()
    syncBuiltinESMExports()
    const list = async () => (await petstore.call('/pets')).text()
    assert.equal((await petstore.add(REX)).status, 201)
    // A page is kept when it is read for the second time.
    await list()
    const before = await list()
    held = []
    const waiting = petstore.add(REX)
    await until(() => held!.length > 0, 'the sync of a create begins')
    assert.equal(await list(), before)
    const [letSync] = held
    held = undefined
    letSync!()
    assert.equal((await waiting).status, 201)
    assert.notEqual(await list(), before)
  })

  for (const workers of ['1', '2']) {
    it(`is refused while a sync hangs for good, and a stop takes no longer than usual (workers: ${workers})`, async () => {
      await using folder = await Folder.create()
      const PORT = String(await freePort())
      const { served, add, list, order } = await serveOnFaultyDisk(folder, { PETSTORE_WORKERS: workers, PORT })
      assert.equal((await add('kept')).status, 201)
      execFileSync('mkfifo', [order])
      await expectError(await add('unknown'), 'service_unavailable')
      const started = performance.now()
      served.child.kill('SIGTERM')
      const { code, signal } = await served.ended
      // An exit would wait for the disk. With two processes it may be the worker that has to be killed.
      if (workers === '1' || code !== 0) assert.deepEqual([code, signal], [null, 'SIGKILL'])
      assert.ok(performance.now() - started < 15_000)
      await rm(order)
      const again = await serve(folder, { env: { PORT } })
      assert.ok((await list(again.url)).includes('kept'))
    })
  }
})

/** The file that orders syncs to fail or hang, and the settings by which a service obeys it. */
function faultyDisk({ path }: Folder) {
  const order = join(path, 'order')
  const preload = `--import ${new URL('../harness/databases/faulty-sync.ts', import.meta.url).href}`
  return { order, env: { NODE_OPTIONS: preload, FAULTY_SYNC: order, PETSTORE_WORKERS: '1' } }
}

async function serveOnFaultyDisk(folder: Folder, settings: Record<string, string> = {}) {
  const { key } = await makeKey(folder)
  const { order, env } = faultyDisk(folder)
  const served = await serve(folder, { env: { ...env, ...settings } })
  const headers = { Authorization: `Bearer ${key}` }
  const add = (name: string) =>
    fetch(`${served.url}/v1/pets`, {
      method: 'POST',
      body: JSON.stringify({ name, categoryId: 1 }),
      headers: { ...headers, 'Content-Type': 'application/json' },
    })
  const list = async (url: string) => {
    const animals = (await (await fetch(`${url}/v1/pets`, { headers })).json()) as { name: string }[]
    return animals.map(({ name }) => name)
  }
  /** Resolves when so many calls are counted and synced: until the next call, no other write meets an order. */
  const allWritten = async (calls: number) => {
    const written = () => {
      using db = new DatabaseSync(join(folder.path, 'data/petstore.db'), { readOnly: true })
      return db.prepare('SELECT sum(calls) AS calls FROM usage_counts').get()!['calls']
    }
    await until(() => written() === calls, 'usage is written')
    // Its read waits for the sync.
    await until(async () => (await fetch(`${served.url}/readyz`)).status === 200, 'it is ready')
  }
  return { served, key, add, list, allWritten, order }
}

// The move: petstore copy carries a whole store from one engine to another, or says why not.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Readable, Writable } from 'node:stream'
import { describe, it } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { run } from '../src/cli/run.ts'
import { readConfig } from '../src/config.ts'
import { INT64_MAX, INT64_MIN } from '../src/contract/int64.ts'
import type { NewPet } from '../src/contract/pets.ts'
import { openStore } from '../src/store/open-store.ts'
import { KINDS, type StoredRecord } from '../src/store/records.ts'
import type { AuditEvent, Store } from '../src/store/store.ts'
import { ENGINES, type TestEngine } from './engines.ts'

const [sqlite, postgres] = ENGINES as readonly [TestEngine, TestEngine]
const ROUTES = [[sqlite, postgres], [postgres, sqlite], [sqlite, sqlite]] as const

const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url))

const rex: NewPet = { name: 'Rex', categoryId: 3n, status: 'available' }

for (const [from, to] of ROUTES) {
  describe(`a copy from ${from.name} to ${to.name}`, { concurrency: false }, () => {
    it('carries everything over, and ids go on behind the last one given', async () => {
      await using source = await from.newDatabase()
      await using target = await to.newDatabase()
      const lastGiven = await withStore(source.url, fill)
      const { code, stdout, stderr } = await copy(source.url, target.url)
      assert.equal(code, 0, stderr)
      assert.match(stdout, /^accounts +3\napi keys +2\nusage counts +1\nfailed requests +1\nonce records +3\naudit events +6\npets +9\n$/)
      assert.match(stderr, /counts and checksums agree/)
      const before = await withStore(source.url, everything)
      await withStore(target.url, async (store) => {
        assert.deepEqual(await everything(store), before)
        assert.deepEqual(await store.pets.countByStatus(), { available: 5, pending: 2, sold: 2 })
        const created = await store.pets.create(rex)
        assert.ok('pet' in created && created.pet.id === lastGiven + 1n)
        await store.accounts.appendEvent(event('acct_later'))
        assert.equal((await store.accounts.keyByHash(Buffer.alloc(32, 1)))?.revokedAt, 77)
      })
    })

    it('goes on where it was killed', async () => {
      await using source = await from.newDatabase()
      await using target = await to.newDatabase()
      const many = 20_000
      await withStore(source.url, async (store) => {
        await fill(store)
        for (let added = 0; added < many; added += 4000) await store.pets.createMany(Array.from({ length: 4000 }, () => rex))
      })
      await killWhileCopying(source.url, target.url)
      await assert.rejects(withStore(target.url, async () => {}), /holds a copy that was interrupted/)
      // The service went on at the source in between.
      await withStore(source.url, async (store) => {
        await store.pets.create({ ...rex, name: 'late' })
        await store.accounts.recordUsage([], new Map([['key_1', 5000]]))
      })
      const { code, stderr } = await copy(source.url, target.url)
      assert.equal(code, 0, stderr)
      assert.deepEqual(await withStore(target.url, everything), await withStore(source.url, everything))
    })

    it('refuses a target with data of its own, and leaves it as it was', async () => {
      await using source = await from.newDatabase()
      await using target = await to.newDatabase()
      await withStore(source.url, fill)
      await withStore(target.url, (store) => store.pets.create(rex))
      const before = await withStore(target.url, everything)
      const { code, stderr } = await copy(source.url, target.url)
      assert.equal(code, 1)
      assert.match(stderr, /The target has data already \(pets: 1\); nothing was changed/)
      assert.deepEqual(await withStore(target.url, everything), before)
    })
  })
}

describe('petstore copy', () => {
  it('says what is missing or wrong in its call', async () => {
    await using database = await sqlite.newDatabase()
    const calls: [string[], number, RegExp][] = [
      [['copy', '--to', database.url], 2, /--from is missing/],
      [['copy', '--from', 'mysql://me:secret@h/db', '--to', database.url], 2, /--from must be sqlite:PATH or postgres:.* got "mysql:\/\/…@h\/db"/],
      [['copy', '--from', database.url, '--to', database.url], 2, /the same database/],
      [['copy', '--from', database.url, '--to', 'sqlite:x.db'], 1, /There is no database .* to copy from/],
      [['copy', '--from', 'postgres://me:secret@127.0.0.1:1/db', '--to', database.url], 1, /Cannot connect to PostgreSQL at 127\.0\.0\.1:1/],
    ]
    for (const [words, expected, message] of calls) {
      const { code, stderr } = await petstore(words)
      assert.equal(code, expected, stderr)
      assert.match(stderr, message)
      assert.ok(!stderr.includes('secret'))
    }
  })
})

/** Some of everything; tells the last id that was given to an animal. */
async function fill(store: Store): Promise<bigint> {
  const { accounts, pets } = store
  for (const [index, id] of ['acct_A', 'acct_a', 'acct_Ä'].entries()) {
    await accounts.createAccount({ id, email: `Person${index}@Example.com`, passwordHash: 'hash', createdAt: 1 }, event(id))
  }
  for (const [index, name] of ['laptop 💻', 'revoked'].entries()) {
    const key = { id: `key_${index}`, accountId: 'acct_A', name, lastFour: 'abcd', createdAt: 1, expiresAt: index || undefined, revokedAt: undefined, lastUsedAt: undefined }
    await accounts.createKey({ ...key, hash: Buffer.alloc(32, index) }, event('acct_A', 'key.created'))
  }
  await accounts.revokeKey('key_1', 77, event('acct_A', 'key.revoked'))
  await accounts.recordUsage([{ keyId: 'key_0', hour: 3_600_000, operation: 'getPet', status: 200, calls: 3 }], new Map([['key_0', 900]]))
  await accounts.recordFailures([{ at: 1, accountId: 'acct_a', keyId: 'key_0', requestId: 'r', operation: 'createPet', status: 400, code: 'c', message: 'é' }])
  const names = ['Rex', ' spaces ', "Robert'); DROP TABLE pets;--", '🐈‍⬛', 'e\u0301', '\u0001', '\\', '"', 'x'.repeat(255)]
  let last = 0n
  for (const [index, name] of names.entries()) {
    const status = (['available', 'pending', 'sold', 'available'] as const)[index % 4]!
    const newPet: NewPet = { name, categoryId: index % 2 === 0 ? INT64_MAX : INT64_MIN, status }
    const firstTime = { accountId: 'acct_A', key: `k${index}`, fingerprint: Buffer.alloc(32, index), now: 1, validSince: 0 }
    const created = await pets.create(newPet, index < 3 ? firstTime : undefined)
    assert.ok('pet' in created)
    last = created.pet.id
  }
  return last
}

function event(accountId: string, action: AuditEvent['action'] = 'account.created'): AuditEvent {
  return { at: 1_790_000_000_000, accountId, action, via: 'command line', subject: 'someone' }
}

/** All records of all kinds, in an order that does not depend on the engine. */
async function everything({ records }: Store): Promise<Record<string, string[]>> {
  const all: Record<string, string[]> = {}
  for (const kind of KINDS) {
    const rows = await records.read(kind, undefined, 100_000)
    all[kind.name] = rows.map(asText).toSorted()
  }
  return all
}

function asText(record: StoredRecord): string {
  return Object.entries(record).map(([column, value]) => `${column}=${Buffer.isBuffer(value) ? value.toString('hex') : value}`).join(' ')
}

async function withStore<T>(url: string, work: (store: Store) => Promise<T>): Promise<T> {
  const store = await openStore(readConfig({ database: url }, {}).database)
  try {
    return await work(store)
  } finally {
    await store.close()
  }
}

/** Runs a command in this process. */
async function petstore(words: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const written = { stdout: '', stderr: '' }
  const collect = (name: 'stdout' | 'stderr') =>
    new Writable({
      write(chunk: Buffer, _encoding, done) {
        written[name] += chunk.toString()
        done()
      },
    })
  const terminal = { env: {}, stdin: Readable.from([]), stdout: collect('stdout'), stderr: collect('stderr') }
  const code = await run([...words], { ...terminal, clock: Date.now, stopSignal: () => new Promise<string>(() => {}) })
  return { code, ...written }
}

function copy(from: string, to: string) {
  return petstore(['copy', '--from', from, '--to', to])
}

/** Kills the copy when some of the animals are over, but not all. */
async function killWhileCopying(from: string, to: string): Promise<void> {
  const pets = KINDS.find(({ name }) => name === 'pets')!
  await withStore(to, async ({ records }) => {
    const child = spawn(process.execPath, [MAIN, 'copy', '--from', from, '--to', to], { stdio: 'inherit' })
    const ended = once(child, 'exit')
    while ((await records.count(pets)) === 0 && child.exitCode === null) await setTimeout(2)
    child.kill('SIGKILL')
    const [, signal] = (await ended) as [number | null, string | null]
    assert.equal(signal, 'SIGKILL', 'the copy was over before it could be killed')
  })
}

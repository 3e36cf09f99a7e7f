// The move: petstore copy carries a whole store from one engine to another, or says why not.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { INT64_MAX, INT64_MIN } from '../../src/contract/int64.ts'
import type { NewPet } from '../../src/contract/pets.ts'
import { CopyRefused, copyStore } from '../../src/store/database/copy-store.ts'
import { COUNTED_KINDS, type Kind, kindOf, KINDS, type StoredRecord, titleOf } from '../../src/store/records.ts'
import type { Idempotency } from '../../src/store/idempotency.ts'
import type { Store } from '../../src/store/store.ts'
import { ENGINES, postgres, sqlite } from '../harness/databases/engines.ts'
import { commandsOn, type InProcessOptions, petstore } from '../harness/programs/in-process-command.ts'
import { apiKey, event } from '../harness/databases/sample-rows.ts'
import { samplePet } from '../harness/databases/sample-pet.ts'
import { withStore } from '../harness/databases/with-store.ts'

const ROUTES = [
  [sqlite, postgres],
  [postgres, sqlite],
  [sqlite, sqlite],
] as const

const KILLED_COPY = fileURLToPath(new URL('killed-copy.ts', import.meta.url))
const PETS = kindOf('pets')
/** Ids that were given and are free again, as after animals were removed by hand. */
const GAP = 7n

const rex: NewPet = { ...samplePet, name: 'Rex', status: 'available' }

for (const [from, to] of ROUTES) {
  describe(`a copy from ${from.name} to ${to.name}`, { concurrency: false }, () => {
    it('carries everything over, and ids go on behind the last one given', async () => {
      await using source = await from.newEmptyDatabase()
      await using target = await to.newEmptyDatabase()
      const lastGiven = await withStore(source.url, fill)
      const { code, stdout, stderr } = await copy(source.url, target.url)
      assert.equal(code, 0, stderr)
      assert.match(stderr, /compared; all records match/)
      const [before, told, ids] = await withStore(source.url, (store) =>
        Promise.all([everything(store), asTold(store), lastIds(store)]),
      )
      const counted = KINDS.map((kind) => [titleOf(kind), before[kind.name]!.length] as const)
      for (const [title, count] of counted) assert.ok(count > 0, `fill below adds ${title}`)
      assert.deepEqual(
        stdout.split('\n').map((line) => line.replace(/ {2,}/, ' ')),
        [...counted.map((each) => each.join(' ')), ''],
      )
      await withStore(target.url, async (store) => {
        assert.deepEqual(await everything(store), before)
        assert.deepEqual(await asTold(store), told)
        assert.deepEqual(await lastIds(store), ids)
        assert.deepEqual(await store.pets.countByStatus(), { available: 5, pending: 2, sold: 2 })
        const created = await store.pets.create(rex)
        assert.ok('pet' in created && created.pet.id === lastGiven + 1n)
        await store.accounts.appendEvent(event('acct_later'))
        assert.equal((await store.accounts.keyByHash(Buffer.alloc(32, 1)))?.revokedAt, 77)
        assert.equal((await store.pets.create(rex, firstTime(0))).outcome, 'replayed')
      })
    })

    it('goes on where it was killed', async () => {
      await using source = await from.newEmptyDatabase()
      await using target = await to.newEmptyDatabase()
      await withStore(source.url, async (store) => {
        await fill(store)
        for (const batch of [4000, 4000, 3000]) await store.pets.createMany(Array.from({ length: batch }, () => rex))
      })
      const child = spawn(process.execPath, [KILLED_COPY, source.url, target.url], { stdio: 'inherit' })
      assert.deepEqual(await once(child, 'exit'), [null, 'SIGKILL'])
      await assertUnfinished(target.url)
      assert.equal(await withUnfinished(target.url, ({ records }) => records.count(PETS)), 5000)
      const { code, stderr } = await copy(source.url, target.url, { isTTY: true })
      assert.equal(code, 0, stderr)
      assert.match(stderr, / 10000 of 11009 {2}Copying animals/)
      assert.doesNotMatch(stderr, / 5000 of 11009 {2}Copying animals/, 'the first batch was there already')
      assert.deepEqual(await withStore(target.url, everything), await withStore(source.url, everything))
    })

    it('refuses to go on where the source has changed since it was killed, and says what to do', async () => {
      await using source = await from.newEmptyDatabase()
      const accounts = await withStore(source.url, async (store) => {
        await fill(store)
        return store.records.read(kindOf('accounts'), undefined, 100)
      })
      const [first, second] = accounts as [StoredRecord, StoredRecord]
      const cases: [copied: StoredRecord, why: RegExp][] = [
        [{ ...first, password_hash: 'old' }, /accounts differ: 3 at the source, 3 at the target, with other contents/],
        // The first account is new.
        [second, /The target refuses accounts: .*unique/i],
      ]
      for (const [copied, why] of cases) {
        await using target = await to.newEmptyDatabase()
        await withStore(target.url, async (store) => {
          await store.setUnfinishedCopy(true)
          await store.records.write(kindOf('accounts'), [copied])
        })
        const { code, stderr } = await copy(source.url, target.url)
        assert.equal(code, 1)
        assert.match(stderr, why)
        assert.match(stderr, /run the same copy again; if that does not help, empty the target first/)
        await assertUnfinished(target.url)
      }
    })
  })
}

describe('petstore copy', () => {
  it('says so if a service has changed animals at the source meanwhile, and keeps the target unfinished', async () => {
    await using source = await sqlite.newEmptyDatabase()
    await withStore(source.url, fill)
    for (const [change, difference] of [
      ["UPDATE pets SET status = 'sold' WHERE name = 'Rex'", '9 at the source, 9 at the target, with other contents'],
      ["INSERT INTO pets (name, category_id, status) VALUES ('late', 1, 'sold')", '10 at the source, 9 at the target'],
    ] as const) {
      await using target = await sqlite.newEmptyDatabase()
      let isChanged = false
      // When all is copied, and nothing is compared yet.
      const onReport = (text: string) => {
        if (isChanged || !text.includes('Checking accounts')) return
        isChanged = true
        using db = new DatabaseSync(source.url.slice('sqlite:'.length))
        db.exec(change)
      }
      const { code, stderr } = await copy(source.url, target.url, { isTTY: true, onReport })
      assert.equal(code, 1)
      assert.ok(stderr.includes(`petstore: animals differ: ${difference}`), stderr)
      assert.match(
        stderr,
        /Is a service or another copy still running on one of them\? Stop it and run the same copy again/,
      )
      await assertUnfinished(target.url)
    }
  })

  for (const engine of ENGINES) {
    it(`says so if another copy adds the same animals meanwhile, and can be run again, on ${engine.name}`, async ({
      mock,
    }) => {
      await using source = await sqlite.newEmptyDatabase()
      await using target = await engine.newEmptyDatabase()
      await withStore(source.url, async (one) => {
        await fill(one)
        await withStore(target.url, async (other) => {
          const write = other.records.write.bind(other.records)
          const mocked = mock.method(other.records, 'write', async (kind: Kind, records: StoredRecord[]) => {
            if (kind === PETS) await write(kind, records)
            await write(kind, records)
          })
          await assert.rejects(
            copyStore(one, other, () => {}),
            (error) =>
              error instanceof CopyRefused &&
              /^The target refuses animals: .*(?:UNIQUE|unique).*\. Is a service or another copy/.test(error.message),
          )
          mocked.mock.restore()
          await copyStore(one, other, () => {})
          assert.deepEqual(await everything(other), await everything(one))
        })
      })
    })
  }

  it('keeps every other command from a target that it has not finished', async () => {
    await using target = await sqlite.newEmptyDatabase()
    await withStore(target.url, (store) => store.setUnfinishedCopy(true))
    const commands = commandsOn(target.url, { input: 'name,categoryId\nRex,1\n' })
    for (const line of [
      'serve --port 0',
      'migrate',
      'account create a@example.com --password-stdin',
      'account list',
      'account password a@example.com --password-stdin',
      'account remove a@example.com --yes',
      'key create --account a@example.com --name x',
      'key list',
      'key revoke key_1',
      'environment show',
      'environment set staging',
      'seed --count 1',
      'import - --format csv',
      'export - --format csv',
    ])
      await commands.refused(1, line, /holds a copy that was interrupted; run the same copy again to finish it\.\n/)
    assert.equal(await withUnfinished(target.url, ({ records }) => records.count(PETS)), 0)
  })

  it('prints JSON for scripts, and leaves nothing but the two database files, each complete without its write-ahead log', async () => {
    await using source = await sqlite.newEmptyDatabase()
    await using target = await sqlite.newEmptyDatabase()
    await withStore(source.url, fill)
    const { code, stdout } = await petstore(['copy', '--from', source.url, '--to', target.url, '--json'])
    assert.equal(code, 0)
    const { copied } = JSON.parse(stdout) as { copied: Record<string, number> }
    const counts = Object.values(await withStore(source.url, everything)).map(({ length }) => length)
    assert.deepEqual([Object.keys(copied), Object.values(copied)], [KINDS.map(({ name }) => name), counts])
    for (const { url } of [source, target]) assert.deepEqual(filesOf(url), ['petstore.db'])
  })

  it('records the environment of a source that has none yet, and carries it over', async () => {
    await using source = await sqlite.newEmptyDatabase()
    await using target = await sqlite.newEmptyDatabase()
    await withStore(source.url, fill)
    const { code, stderr } = await copy(source.url, target.url, { env: { PETSTORE_ENVIRONMENT: 'production' } })
    assert.equal(code, 0, stderr)
    assert.match(stderr, /The target belongs to production, as the source does\./)
    for (const { url } of [source, target])
      assert.equal(await withStore(url, (store) => store.environment()), 'production', url)
  })

  it('creates no target for a source that is not there, and leaves no write-ahead log beside its source when the target cannot be opened', async () => {
    await using source = await sqlite.newEmptyDatabase()
    await using target = await sqlite.newEmptyDatabase()
    assert.equal((await copy(source.url, target.url)).code, 1)
    for (const { url } of [source, target]) assert.deepEqual(filesOf(url), [])
    await withStore(source.url, fill)
    const { code, stderr } = await copy(source.url, 'postgres://127.0.0.1:1/none')
    assert.deepEqual([code, /Cannot connect to PostgreSQL/.test(stderr)], [1, true], stderr)
    assert.deepEqual(filesOf(source.url), ['petstore.db'])
  })

  it('refuses a database of PostgreSQL as its own target, as any that has data', async () => {
    await using database = await postgres.newEmptyDatabase()
    await withStore(database.url, fill)
    const before = await withStore(database.url, everything)
    const { code, stderr } = await copy(database.url, database.url)
    assert.deepEqual([code, /The target has data already .*nothing was changed/.test(stderr)], [1, true], stderr)
    assert.deepEqual(await withStore(database.url, everything), before)
  })

  it('says what is missing or wrong in its call', async () => {
    await using database = await sqlite.newEmptyDatabase()
    const calls: [options: string, code: number, message: RegExp][] = [
      [`--to ${database.url}`, 2, /--from is missing/],
      [
        `--from mysql://me:secret@h/db --to ${database.url}`,
        2,
        /--from must be sqlite:PATH or postgres:.* got "mysql:…"/,
      ],
      [`--from ${database.url} --to ${database.url}`, 2, /the same database/],
      [
        `--from ${database.url} --to sqlite:x.db`,
        1,
        /There is no petstore database at .*petstore\.db\. Name the store to copy with --from\.\n$/,
      ],
      [
        '--from postgres://one@127.0.0.1:1 --to postgres://two@127.0.0.1:1',
        1,
        /Cannot connect to PostgreSQL at 127\.0\.0\.1:1/,
      ],
      [
        '--from postgres:///db?host=/nowhere/one --to postgres:///db?host=/nowhere/two',
        1,
        /Cannot connect to PostgreSQL at \/nowhere\/one/,
      ],
      [
        `--from postgres://me:secret@127.0.0.1:1/db --to ${database.url}`,
        1,
        /Cannot connect to PostgreSQL at 127\.0\.0\.1:1/,
      ],
    ]
    for (const [options, expected, message] of calls) {
      const { code, stderr } = await petstore(['copy', ...options.split(' ')])
      assert.equal(code, expected, stderr)
      assert.match(stderr, message)
      assert.ok(!stderr.includes('secret'))
    }
  })

  it('warns of a password that others can read in the process list, and says where to put it', async () => {
    await using database = await sqlite.newEmptyDatabase()
    const { stderr } = await petstore(['copy', '--from', 'postgres://me:secret@127.0.0.1:1/db', '--to', database.url])
    assert.match(
      stderr,
      /^petstore: Warning: others can read the password of --from in the process list\. Leave it out and set PGPASSWORD instead\.\n/,
    )
    const both = await petstore(['copy', '--from', 'postgres://me:a@127.0.0.1:1/db', '--to', 'postgresql://me:b@h/db'])
    assert.match(both.stderr, /^.*the password of --from .*\n.*the password of --to .*\n(?!.*the password)/)
    const listed = await petstore(['key', 'list', '--database', 'postgres://me:secret@127.0.0.1:1/db'])
    assert.match(
      listed.stderr,
      /the password of --database in the process list\. Set DATABASE_URL or DATABASE_URL_FILE instead\.\n/,
    )
    for (const address of ['postgres://me@127.0.0.1:1/db', 'postgres://127.0.0.1:1/db']) {
      assert.doesNotMatch((await petstore(['key', 'list', '--database', address])).stderr, /Warning/, address)
    }
  })
})

const USAGE = { keyId: 'key_0', hour: 3_600_000, operation: 'getPet', status: 200, calls: 3 }

function firstTime(index: number): Idempotency {
  return { accountId: 'acct_A', key: `k${index}`, fingerprint: Buffer.alloc(32, index), now: 1, validSince: 0 }
}

/** Some of everything; tells the last id that was given to an animal. */
async function fill({ accounts, batches, categories, imports, pets, records }: Store): Promise<bigint> {
  await categories.save({ number: 3n, name: 'Cats' }, undefined, event('acct_A', 'category.added'))
  for (const [index, id] of ['acct_A', 'acct_a', 'acct_Ä'].entries()) {
    await accounts.createAccount(
      {
        id,
        email: `Person${index}@Example.com`,
        passwordHash: `hash ${index}`,
        createdAt: index,
        role: 'manager',
        name: `Zoë ${index}`,
      },
      event(id),
    )
  }
  assert.ok(await accounts.createLink('hash', 'acct_a', 1, { ...event('acct_A', 'account.link_made'), at: 0 }))
  for (const [index, name] of ['laptop 💻', 'revoked'].entries()) {
    const environment = (['production', 'staging'] as const)[index]!
    const own = { name, environment, lastFour: `abc${index}`, createdAt: index, expiresAt: index || undefined }
    const key = { ...apiKey(`key_${index}`, 'acct_A'), ...own, hash: Buffer.alloc(32, index) }
    await accounts.createKey(key, event('acct_A', 'key.created'))
  }
  await accounts.revokeKey('key_1', 77, event('acct_A', 'key.revoked'))
  await accounts.recordUsage([USAGE], new Map([['key_0', 900]]))
  const failed = { at: 1, accountId: 'acct_a', keyId: 'key_0', requestId: 'r', operation: 'createPet' }
  await accounts.recordFailures([{ ...failed, status: 400, code: 'c', message: 'é' }])
  const odd = [' spaces ', "Robert'); DROP TABLE pets;--", '🐈‍⬛', 'e\u0301', '\u0001', '\\', '"', 'x'.repeat(255)]
  const names = ['Rex', ...odd]
  let last = 0n
  for (const [index, name] of names.entries()) {
    const status = (['available', 'pending', 'sold', 'available'] as const)[index % 4]!
    const newPet: NewPet = { name, categoryId: index % 2 === 0 ? INT64_MAX : INT64_MIN, status }
    const created = await pets.create(newPet, index < 3 ? firstTime(index) : undefined)
    assert.ok('pet' in created)
    last = created.pet.id
  }
  await accounts.appendEvent({ ...event('acct_A'), detail: 'sold → available' })
  const left = { id: INT64_MAX, former: { ...rex, id: INT64_MAX }, state: 'left' as const }
  await batches.begin({ form: 'form', action: 'changed', data: { file: 'é' } }, [left], event('acct_A'))
  await imports.begin({ hash: 'ab12', file: '/srv/pets.csv', rowsTotal: 5 }, 1, false)
  await imports.beginPlanned({ hash: 'cd34', file: 'pets.csv' }, '{"format":1}', 5, event('acct_A'))
  await accounts.appendEvent({
    ...event('acct_A', 'pet.removed'),
    petId: INT64_MIN,
    data: { from: { name: '"', categoryId: String(INT64_MAX) }, added: { at: 1, by: undefined } },
  })
  await records.write(kindOf('former_people'), [{ id: 'acct_gone', name: 'Zoë' }])
  await records.write(kindOf('categories'), [{ number: 5n, name: 'Dogs', name_folded: 'dogs', removed_at: 7n }])
  for (const kind of COUNTED_KINDS) await records.raiseLastId(kind, (await records.lastId(kind)) + GAP)
  return last + GAP
}

/** What the service itself reads of it, whichever columns a copy knows of. */
async function asTold({ accounts, pets }: Store): Promise<object[]> {
  const rows = [
    await accounts.listAccounts(),
    await accounts.listKeys(),
    Object.fromEntries(await accounts.namesOf(['acct_A', 'acct_gone'])),
    await accounts.usageSince('acct_A', 0),
    await accounts.failedRequests('acct_a', 10),
    await accounts.auditTrail('acct_A', 10),
    await pets.list({ limit: 100 }),
  ]
  return rows.flat().map((row) => ({ ...row }))
}

function lastIds({ records }: Store): Promise<[Kind, bigint][]> {
  return Promise.all(COUNTED_KINDS.map(async (kind) => [kind, await records.lastId(kind)]))
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
  return Object.entries(record)
    .map(([column, value]) => `${column}=${Buffer.isBuffer(value) ? value.toString('hex') : value}`)
    .join(' ')
}

async function assertUnfinished(url: string): Promise<void> {
  await assert.rejects(
    withStore(url, async () => {}),
    /holds a copy that was interrupted/,
  )
}

function filesOf(url: string): string[] {
  return readdirSync(dirname(url.slice('sqlite:'.length)))
}

function withUnfinished<T>(url: string, work: (store: Store) => Promise<T>): Promise<T> {
  return withStore(url, work, { unfinished: true })
}

/** The servers of the tests have a password in their address, of which every copy warns. */
async function copy(from: string, to: string, options?: InProcessOptions) {
  const { stderr, ...rest } = await petstore(['copy', '--from', from, '--to', to], options)
  return { ...rest, stderr: stderr.replaceAll(/^petstore: Warning: others can read the password of .*\n/gm, '') }
}

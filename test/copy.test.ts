// The move: petstore copy carries a whole store from one engine to another, or says why not.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { INT64_MAX, INT64_MIN } from '../src/contract/int64.ts'
import type { NewPet } from '../src/contract/pets.ts'
import { CopyRefused, copyStore } from '../src/store/copy-store.ts'
import { COUNTED_KINDS, type Kind, kindOf, KINDS, type StoredRecord } from '../src/store/records.ts'
import type { Idempotency, Store } from '../src/store/store.ts'
import { ENGINES, type TestEngine } from '../assurance/harness/engines.ts'
import { type InProcessOptions, petstore } from './in-process-command.ts'
import { event } from './sample-rows.ts'
import { samplePet } from '../assurance/harness/sample-pet.ts'
import { withStore } from './with-store.ts'

const [sqlite, postgres] = ENGINES as readonly [TestEngine, TestEngine]
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
      await using source = await from.newDatabase()
      await using target = await to.newDatabase()
      const lastGiven = await withStore(source.url, fill)
      const { code, stdout, stderr } = await copy(source.url, target.url)
      assert.equal(code, 0, stderr)
      assert.match(
        stdout,
        /^accounts +3\napi keys +2\nusage counts +1\nfailed requests +1\nidempotency records +3\naudit events +7\nimports +1\nanimals +9\n$/,
      )
      assert.match(stderr, /compared; all records match/)
      const [before, told, ids] = await withStore(source.url, (store) =>
        Promise.all([everything(store), asTold(store), lastIds(store)]),
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
      await using source = await from.newDatabase()
      await using target = await to.newDatabase()
      await withStore(source.url, async (store) => {
        await fill(store)
        for (const batch of [4000, 4000, 3000]) await store.pets.createMany(Array.from({ length: batch }, () => rex))
      })
      const child = spawn(process.execPath, [KILLED_COPY, source.url, target.url], { stdio: 'inherit' })
      assert.deepEqual(await once(child, 'exit'), [null, 'SIGKILL'])
      await assert.rejects(
        withStore(target.url, async () => {}),
        /holds a copy that was interrupted/,
      )
      assert.equal(await withUnfinished(target.url, ({ records }) => records.count(PETS)), 5000)
      // The service went on at the source in between.
      await withStore(source.url, async (store) => {
        await store.pets.create({ ...rex, name: 'late' })
        await store.accounts.recordUsage([{ ...USAGE, calls: 4 }], new Map([['key_1', 5000]]))
        await store.accounts.revokeKey('key_0', 78, event('acct_A', 'key.revoked'))
        await store.accounts.removeAccount('acct_a', event('acct_a', 'account.removed'))
        await store.pets.purgeIdempotencyRecords(2)
      })
      const { code, stderr } = await copy(source.url, target.url, { isTTY: true })
      assert.equal(code, 0, stderr)
      assert.match(stderr, / 10000 of 11010 {2}Copying animals/)
      assert.doesNotMatch(stderr, / 5000 of 11010 {2}Copying animals/, 'the first batch was there already')
      assert.deepEqual(await withStore(target.url, everything), await withStore(source.url, everything))
    })

    const OWN_DATA: [found: string, add: (store: Store) => Promise<unknown>][] = [
      ['animals: 1', ({ pets }) => pets.create(rex)],
      ['imports: 1', ({ imports }) => imports.begin({ hash: 'ab12', file: '/srv/pets.csv', rowsTotal: 5 }, 1, false)],
      [
        'accounts: 1',
        ({ accounts }) =>
          accounts.createAccount(
            { id: 'acct_B', email: 'b@example.com', passwordHash: 'hash', createdAt: 1 },
            event('acct_B'),
          ),
      ],
      // All that is left of accounts that were removed.
      ['audit events: 1', ({ accounts }) => accounts.appendEvent(event('acct_B'))],
    ]
    for (const [found, add] of OWN_DATA) {
      it(`refuses a target with data of its own (${found}), and leaves it as it was`, async () => {
        await using source = await from.newDatabase()
        await using target = await to.newDatabase()
        await withStore(source.url, fill)
        await withStore(target.url, add)
        const before = await withStore(target.url, everything)
        const { code, stderr } = await copy(source.url, target.url)
        assert.equal(code, 1)
        assert.ok(stderr.includes(`The target has data already (${found}); nothing was changed`), stderr)
        assert.deepEqual(await withStore(target.url, everything), before)
      })
    }

    it('carries the environment over, and refuses a target of the other one', async () => {
      await using source = await from.newDatabase()
      await using target = await to.newDatabase()
      await using other = await to.newDatabase()
      await withStore(source.url, (store) => store.recordEnvironment('production'))
      await withStore(other.url, (store) => store.recordEnvironment('staging'))
      assert.equal((await copy(source.url, target.url)).code, 0)
      assert.equal(await withStore(target.url, (store) => store.environment()), 'production')
      await using byDefault = await to.newDatabase()
      await withStore(byDefault.url, (store) => store.recordEnvironment('staging', { isDefault: true }))
      assert.equal((await copy(source.url, byDefault.url)).code, 0)
      assert.equal(await withStore(byDefault.url, (store) => store.environment()), 'production')
      assert.equal(await withStore(byDefault.url, (store) => store.isDefaultEnvironment()), false, 'it was chosen')
      await using unchosen = await to.newDatabase()
      await using unchosenSource = await from.newDatabase()
      await withStore(unchosenSource.url, (store) => store.recordEnvironment('production', { isDefault: true }))
      assert.equal((await copy(unchosenSource.url, unchosen.url)).code, 0)
      assert.deepEqual(
        await withStore(unchosen.url, async (store) => [await store.environment(), await store.isDefaultEnvironment()]),
        ['production', true],
        'what nobody has chosen stays a default',
      )
      const { code, stderr } = await copy(source.url, other.url)
      assert.equal(code, 1)
      assert.match(stderr, /^petstore: The source belongs to production, the target to staging; nothing was changed\./)
      assert.equal(await withStore(other.url, (store) => store.environment()), 'staging')
    })

    it('is marked as unfinished before anything is written, and as finished when nothing is left to do', async ({
      mock,
    }) => {
      await using source = await from.newDatabase()
      await using target = await to.newDatabase()
      const stateOf = async (store: Store) => [await everything(store), await lastIds(store)]
      await withStore(source.url, async (one) => {
        await fill(one)
        await withStore(target.url, async (other) => {
          const expected = [
            { unfinished: true, state: await stateOf(other) },
            { unfinished: false, state: await stateOf(one) },
          ]
          const marked: object[] = []
          const mark = other.setUnfinishedCopy.bind(other)
          mock.method(other, 'setUnfinishedCopy', async (unfinished: boolean) => {
            marked.push({ unfinished, state: await stateOf(other) })
            await mark(unfinished)
          })
          await copyStore(one, other, () => {})
          assert.deepEqual(marked, expected)
        })
      })
    })

    it('refuses a source that is itself an unfinished copy, and leaves the target empty', async () => {
      await using source = await from.newDatabase()
      await using target = await to.newDatabase()
      await withStore(source.url, async (store) => {
        await fill(store)
        await store.setUnfinishedCopy(true)
      })
      const { code, stderr } = await copy(source.url, target.url)
      assert.deepEqual(
        [code, stderr.replace(/Note: .*\n$/, '')],
        [1, 'petstore: The source is itself an unfinished copy; finish that one first.\n'],
      )
      assert.ok(Object.values(await withStore(target.url, everything)).every(({ length }) => length === 0))
    })

    it('repairs what an interrupted copy has taken over and the source has changed, removed or given to another since', async () => {
      await using source = await from.newDatabase()
      await using target = await to.newDatabase()
      const { pets, accounts, keys } = await withStore(source.url, async (store) => {
        await fill(store)
        const all = (kind: Kind) => store.records.read(kind, undefined, 100)
        return { pets: await all(PETS), accounts: await all(kindOf('accounts')), keys: await all(kindOf('api_keys')) }
      })
      await withStore(target.url, async (store) => {
        await store.setUnfinishedCopy(true)
        const { records } = store
        const [first, second, ...others] = accounts as [StoredRecord, StoredRecord, StoredRecord]
        // One account with another password, and one that is gone and whose address a new one has, which comes before it.
        await records.write(kindOf('accounts'), [
          { ...first, password_hash: 'old' },
          { ...second, id: 'acct_zzz' },
          ...others,
        ])
        await records.write(kindOf('api_keys'), [{ ...keys[0]!, account_id: 'acct_zzz' }, keys[1]!])
        // The first animal is missing, one was changed, and one was added after the last.
        await records.write(PETS, [{ ...pets[1]!, status: 'sold' }, ...pets.slice(2), { ...pets[0]!, id: 2n ** 60n }])
      })
      const { code, stderr } = await copy(source.url, target.url)
      assert.equal(code, 0, stderr)
      assert.deepEqual(await withStore(target.url, everything), await withStore(source.url, everything))
    })

    it('finds an event of the audit trail that differs, though as many are there, and does not let that copy be used', async () => {
      await using source = await from.newDatabase()
      await using target = await to.newDatabase()
      const events = await withStore(source.url, async (store) => {
        await fill(store)
        return store.records.read(kindOf('audit_events'), undefined, 100)
      })
      await withStore(target.url, async (store) => {
        await store.setUnfinishedCopy(true)
        await store.records.write(kindOf('audit_events'), [
          { ...events[0]!, subject: 'someone else' },
          ...events.slice(1),
        ])
      })
      const { code, stderr } = await copy(source.url, target.url)
      assert.equal(code, 1)
      assert.match(stderr, /^petstore: audit events differ: 7 at the source, 7 at the target, with other contents\./)
      await assert.rejects(
        withStore(target.url, async () => {}),
        /holds a copy that was interrupted/,
      )
    })
  })
}

describe('petstore copy', () => {
  it('says so if a service has changed animals at the source meanwhile, and repairs it when it is run again', async () => {
    await using source = await sqlite.newDatabase()
    await using target = await sqlite.newDatabase()
    await withStore(source.url, fill)
    for (const [change, difference] of [
      ["UPDATE pets SET status = 'sold' WHERE name = 'Rex'", '9 at the source, 9 at the target, with other contents'],
      ["INSERT INTO pets (name, category_id, status) VALUES ('late', 1, 'sold')", '10 at the source, 9 at the target'],
    ] as const) {
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
      await assert.rejects(
        withStore(target.url, async () => {}),
        /holds a copy that was interrupted/,
      )
    }
    assert.equal((await copy(source.url, target.url)).code, 0)
    assert.deepEqual(await withStore(target.url, everything), await withStore(source.url, everything))
  })

  for (const engine of ENGINES) {
    it(`says so if another copy adds the same animals meanwhile, and can be run again, on ${engine.name}`, async ({
      mock,
    }) => {
      await using source = await sqlite.newDatabase()
      await using target = await engine.newDatabase()
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

    it(`keeps every other command from a target that it has not finished, on ${engine.name}`, async () => {
      await using target = await engine.newDatabase()
      await withStore(target.url, (store) => store.setUnfinishedCopy(true))
      for (const words of [
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
      ]) {
        const options = { env: { DATABASE_URL: target.url }, input: 'name,categoryId\nRex,1\n' }
        const { code, stderr } = await petstore(words.split(' '), options)
        assert.equal(code, 1, words)
        assert.match(stderr, /holds a copy that was interrupted; run the same copy again to finish it\.\n/, words)
      }
      const counts = await withUnfinished(target.url, ({ records }) => records.count(PETS))
      assert.equal(counts, 0)
    })
  }

  it('prints JSON for scripts: how many records of each kind', async () => {
    await using source = await sqlite.newDatabase()
    await using target = await sqlite.newDatabase()
    await withStore(source.url, fill)
    const { code, stdout } = await petstore(['copy', '--from', source.url, '--to', target.url, '--json'])
    assert.equal(code, 0)
    const copied = {
      accounts: 3,
      api_keys: 2,
      usage_counts: 1,
      failed_requests: 1,
      idempotency_records: 3,
      audit_events: 7,
      imports: 1,
      pets: 9,
    }
    assert.deepEqual(JSON.parse(stdout), { copied })
  })

  it('replaces U+0000, which PostgreSQL cannot store, in what an earlier release has kept', async () => {
    await using source = await sqlite.newDatabase()
    await using target = await postgres.newDatabase()
    await withStore(source.url, fill)
    {
      using db = new DatabaseSync(source.url.slice('sqlite:'.length))
      db.prepare('UPDATE failed_requests SET message = ?').run('a\0b\0')
    }
    const { code, stderr } = await copy(source.url, target.url)
    assert.equal(code, 0, stderr)
    const [failed] = await withStore(target.url, ({ accounts }) => accounts.failedRequests('acct_a', 10))
    assert.equal(failed?.message, 'a\uFFFDb\uFFFD')
  })

  it('records the environment of a source that has none yet, and carries it over', async () => {
    await using source = await sqlite.newDatabase()
    await using target = await sqlite.newDatabase()
    await withStore(source.url, fill)
    const { code, stderr } = await copy(source.url, target.url, { env: { PETSTORE_ENVIRONMENT: 'production' } })
    assert.equal(code, 0, stderr)
    // Its newest key decides, not the setting.
    assert.match(stderr, /The target belongs to staging, as the source does\./)
    for (const { url } of [source, target])
      assert.equal(await withStore(url, (store) => store.environment()), 'staging', url)
  })

  it('leaves nothing but the two database files, each complete without its write-ahead log', async () => {
    await using source = await sqlite.newDatabase()
    await using target = await sqlite.newDatabase()
    await withStore(source.url, fill)
    assert.equal((await copy(source.url, target.url)).code, 0)
    for (const { url } of [source, target])
      assert.deepEqual(readdirSync(dirname(url.slice('sqlite:'.length))), ['petstore.db'])
  })

  it('creates no target for a source that is not there', async () => {
    await using source = await sqlite.newDatabase()
    await using target = await sqlite.newDatabase()
    assert.equal((await copy(source.url, target.url)).code, 1)
    for (const { url } of [source, target]) assert.deepEqual(readdirSync(dirname(url.slice('sqlite:'.length))), [])
  })

  it('leaves no write-ahead log beside its source when the target cannot be opened', async () => {
    await using source = await sqlite.newDatabase()
    await withStore(source.url, fill)
    const { code, stderr } = await copy(source.url, 'postgres://127.0.0.1:1/none')
    assert.deepEqual([code, /Cannot connect to PostgreSQL/.test(stderr)], [1, true], stderr)
    assert.deepEqual(readdirSync(dirname(source.url.slice('sqlite:'.length))), ['petstore.db'])
  })

  it('says what is missing or wrong in its call', async () => {
    await using database = await sqlite.newDatabase()
    const calls: [string[], number, RegExp][] = [
      [['copy', '--to', database.url], 2, /--from is missing/],
      [
        ['copy', '--from', 'mysql://me:secret@h/db', '--to', database.url],
        2,
        /--from must be sqlite:PATH or postgres:.* got "mysql:…"/,
      ],
      [['copy', '--from', database.url, '--to', database.url], 2, /the same database/],
      [
        ['copy', '--from', database.url, '--to', 'sqlite:x.db'],
        1,
        /There is no petstore database at .*petstore\.db\. Name the store to copy with --from\.\n$/,
      ],
      [
        ['copy', '--from', 'postgres://me:secret@h/db', '--to', 'postgres://you:secret@h:5432/db?pool_size=2'],
        2,
        /the same database/,
      ],
      // Without a name, the database has the name of the user.
      [['copy', '--from', 'postgres://pets@h', '--to', 'postgres://me@h/pets'], 2, /the same database/],
      [
        ['copy', '--from', 'postgres://one@127.0.0.1:1', '--to', 'postgres://two@127.0.0.1:1'],
        1,
        /Cannot connect to PostgreSQL at 127\.0\.0\.1:1/,
      ],
      [
        ['copy', '--from', 'postgres:///db?host=/nowhere/one', '--to', 'postgres:///db?host=/nowhere/two'],
        1,
        /Cannot connect to PostgreSQL at \/nowhere\/one/,
      ],
      [
        ['copy', '--from', 'postgres://me:secret@127.0.0.1:1/db', '--to', database.url],
        1,
        /Cannot connect to PostgreSQL at 127\.0\.0\.1:1/,
      ],
    ]
    for (const [words, expected, message] of calls) {
      const { code, stderr } = await petstore(words)
      assert.equal(code, expected, stderr)
      assert.match(stderr, message)
      assert.ok(!stderr.includes('secret'))
    }
  })

  it('warns of a password that others can read in the process list, and says where to put it', async () => {
    await using database = await sqlite.newDatabase()
    const { stderr } = await petstore(['copy', '--from', 'postgres://me:secret@127.0.0.1:1/db', '--to', database.url])
    assert.match(
      stderr,
      /^petstore: Warning: others can read the password of --from in the process list\. Leave it out and set PGPASSWORD instead\.\n/,
    )
    const both = await petstore(['copy', '--from', 'postgres://me:a@127.0.0.1:1/db', '--to', 'postgresql://me:b@h/db'])
    assert.deepEqual(
      [...both.stderr.matchAll(/the password of (--\w+)/g)].map(([, flag]) => flag),
      ['--from', '--to'],
    )
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
async function fill({ accounts, imports, pets, records }: Store): Promise<bigint> {
  for (const [index, id] of ['acct_A', 'acct_a', 'acct_Ä'].entries()) {
    await accounts.createAccount(
      { id, email: `Person${index}@Example.com`, passwordHash: `hash ${index}`, createdAt: index },
      event(id),
    )
  }
  for (const [index, name] of ['laptop 💻', 'revoked'].entries()) {
    const key = {
      id: `key_${index}`,
      accountId: 'acct_A',
      name,
      environment: (['production', 'staging'] as const)[index]!,
      lastFour: `abc${index}`,
      createdAt: index,
      expiresAt: index || undefined,
      revokedAt: undefined,
      lastUsedAt: undefined,
    }
    await accounts.createKey({ ...key, hash: Buffer.alloc(32, index) }, event('acct_A', 'key.created'))
  }
  await accounts.revokeKey('key_1', 77, event('acct_A', 'key.revoked'))
  await accounts.recordUsage([USAGE], new Map([['key_0', 900]]))
  await accounts.recordFailures([
    {
      at: 1,
      accountId: 'acct_a',
      keyId: 'key_0',
      requestId: 'r',
      operation: 'createPet',
      status: 400,
      code: 'c',
      message: 'é',
    },
  ])
  const names = [
    'Rex',
    ' spaces ',
    "Robert'); DROP TABLE pets;--",
    '🐈‍⬛',
    'e\u0301',
    '\u0001',
    '\\',
    '"',
    'x'.repeat(255),
  ]
  let last = 0n
  for (const [index, name] of names.entries()) {
    const status = (['available', 'pending', 'sold', 'available'] as const)[index % 4]!
    const newPet: NewPet = { name, categoryId: index % 2 === 0 ? INT64_MAX : INT64_MIN, status }
    const created = await pets.create(newPet, index < 3 ? firstTime(index) : undefined)
    assert.ok('pet' in created)
    last = created.pet.id
  }
  await accounts.appendEvent({ ...event('acct_A'), detail: 'sold → available' })
  await imports.begin({ hash: 'ab12', file: '/srv/pets.csv', rowsTotal: 5 }, 1, false)
  for (const kind of COUNTED_KINDS) await records.raiseLastId(kind, (await records.lastId(kind)) + GAP)
  return last + GAP
}

/** What the service itself reads of it, whichever columns a copy knows of. */
async function asTold({ accounts, pets }: Store): Promise<object[]> {
  const rows = [
    await accounts.listAccounts(),
    await accounts.listKeys(),
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

function withUnfinished<T>(url: string, work: (store: Store) => Promise<T>): Promise<T> {
  return withStore(url, work, { unfinished: true })
}

/** The servers of the tests have a password in their address, of which every copy warns. */
async function copy(from: string, to: string, options?: InProcessOptions) {
  const { stderr, ...rest } = await petstore(['copy', '--from', from, '--to', to], options)
  return { ...rest, stderr: stderr.replaceAll(/^petstore: Warning: others can read the password of .*\n/gm, '') }
}

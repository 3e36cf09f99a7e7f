// Which index a page or a history is read from: told by PostgreSQL's own counts and SQLite's plan, since a slow plan gives the
// same animals.
import assert from 'node:assert/strict'
import type { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import connectTo from 'postgres'
import { readConfig } from '../../src/config.ts'
import { FILTER_NAMES } from '../../src/contract/list-query.ts'
import { FIELD_NAMES, PET_STATUSES } from '../../src/contract/pets.ts'
import { CHANGES_OF_PET } from '../../src/store/people-store.ts'
import { openStore } from '../../src/store/opening/open-store.ts'
import { pagesOfChanges } from '../../src/store/pet-changes.ts'
import { PET_COLUMNS } from '../../src/store/pet-columns.ts'
import { type Page, pageOf, pagesOfList, type PetList } from '../../src/store/pet-list.ts'
import { kindOf } from '../../src/store/records.ts'
import { FOLDED_MOST, securityLog } from '../../src/store/security-log.ts'
import type { Sql } from '../../src/store/sql.ts'
import { openDatabase } from '../../src/store/sqlite/database.ts'
import { sqlitePage } from '../../src/store/sqlite/pets.ts'
import { sqliteSql } from '../../src/store/sqlite/sql.ts'
import type { Transactions } from '../../src/store/sqlite/transactions/transactions.ts'
import { postgres } from '../harness/databases/engines.ts'
import { samplePet, variants } from '../harness/databases/sample-pet.ts'
import { addAccount } from '../harness/databases/sample-rows.ts'

const SOLD = 4000
const ALL = 20_000
const limit = 21

describe('The history of an animal on PostgreSQL', () => {
  it('reads no event of another animal', async () => {
    await using database = await postgres.newDatabase()
    const store = await openStore(readConfig({}, { DATABASE_URL: database.url }).database)
    const event = (index: number) => ({
      id: BigInt(index + 1),
      at: 1n,
      account_id: 'acct_1',
      action: index % 2 === 0 ? 'pet.changed' : 'session.started',
      via: 'console',
      subject: `Rex (${index % 1000})`,
      detail: null,
      pet_id: BigInt(index % 1000),
      data: null,
      batch_id: null,
    })
    await store.records.write(
      kindOf('audit_events'),
      Array.from({ length: 5000 }, (_, index) => event(index)),
    )
    const sql = connectTo(database.url, { max: 1 })
    await sql`ANALYZE audit_events`
    assert.equal((await store.accounts.changesOf(998n, 20)).length, 5)
    assert.equal((await store.accounts.changesOf(99n, 20)).length, 0)
    await store.close()
    const read =
      await sql`SELECT sum(idx_tup_read)::int AS entries FROM pg_stat_user_indexes WHERE relname = 'audit_events'`
    await sql.end()
    assert.deepEqual([...read], [{ entries: 5 }])
  })
})

describe('The history of an animal on SQLite', () => {
  it('is found and sorted by an index', () => {
    using db = openDatabase(':memory:').db
    const plan = db
      .prepare(`EXPLAIN QUERY PLAN SELECT * FROM audit_events WHERE ${CHANGES_OF_PET} = ? ORDER BY id DESC LIMIT ?`)
      .all()
      .map(({ detail }) => String(detail))
    assert.match(plan.join(), /^SEARCH audit_events USING INDEX audit_events_by_pet \(pet_id=\?\)$/)
  })
})

describe('A page of a security log', () => {
  const EVENTS = 5000
  /** The events that are shown each by itself are all old; of what came since, one is a sign-in. */
  const actionOf = (index: number) => {
    if (index < limit) return 'key.created'
    if (index < 2 * limit) return 'pet.changed'
    return index === EVENTS / 2 ? 'session.started' : 'session.refused'
  }
  const events = Array.from({ length: EVENTS }, (_, index) => ({
    id: BigInt(index + 1),
    at: 1n,
    account_id: 'acct_1',
    action: actionOf(index),
    via: 'console',
    subject: 'Rex (1)',
    detail: null,
    pet_id: null,
    data: null,
    batch_id: null,
  }))

  for (const statistics of ['', 'ANALYZE audit_events'])
    it(`reads no more than it counts of thousands of wrong passwords on PostgreSQL ${statistics && 'with statistics'}`, async () => {
      await using database = await postgres.newDatabase()
      const store = await openStore(readConfig({}, { DATABASE_URL: database.url }).database)
      await store.records.write(kindOf('audit_events'), events)
      const sql = connectTo(database.url, { max: 1 })
      await sql.unsafe(statistics)
      const { lines } = await store.accounts.securityLog('acct_1')
      assert.deepEqual(
        lines.map(({ action, count }) => `${count} ${action}`),
        [
          `${FOLDED_MOST} session.refused`,
          '1 session.started',
          ...Array.from({ length: limit - 1 }, () => '1 key.created'),
        ],
      )
      await store.close()
      const read =
        await sql`SELECT indexrelname AS name, idx_tup_read::int AS entries FROM pg_stat_user_indexes WHERE relname = 'audit_events'
        AND idx_tup_read > 0 ORDER BY 1`
      await sql.end()
      const entries = new Map(read.map(({ name, entries: number }) => [name as string, number as number]))
      assert.deepEqual([...entries.keys()], ['audit_events_by_action', 'audit_events_pkey', 'audit_events_unfolded'])
      assert.equal(entries.get('audit_events_unfolded'), limit)
      // The newest and the oldest of each action, and where its range ends.
      assert.ok(entries.get('audit_events_by_action')! <= FOLDED_MOST + 9)
      assert.ok(entries.get('audit_events_pkey')! <= 4)
    })

  for (const statistics of ['', 'ANALYZE'])
    it(`finds each by an index on SQLite ${statistics && 'with statistics'}`, async () => {
      using db = openDatabase(':memory:').db
      const sql = sqliteSql(db, { read: async (run) => run() } as Transactions)
      const add = db.prepare(
        "INSERT INTO audit_events (at, account_id, action, via, subject) VALUES (1, 'acct_1', ?, '', '')",
      )
      for (const { action } of events) add.run(action)
      db.exec(statistics)
      const plans: string[][] = []
      const read: Sql['read'] = (text, ...values) => {
        plans.push(explain(text, db).filter((step) => step.includes('audit_events')))
        return sql.read(text, ...values)
      }
      await securityLog({ ...sql, read }, 'acct_1')
      const inGap =
        'SEARCH audit_events USING COVERING INDEX audit_events_by_action (account_id=? AND action=? AND <expr>>? AND <expr><?)'
      const byId = 'SEARCH audit_events USING INTEGER PRIMARY KEY (rowid=?)'
      assert.deepEqual(plans[0], ['SEARCH audit_events USING INDEX audit_events_unfolded (account_id=? AND id<?)'])
      assert.deepEqual(new Set(plans[1]), new Set([inGap, byId]))
    })
})

describe('The changes of one person or key', () => {
  it('are read on PostgreSQL without those of others, also where its own are all old', async () => {
    await using database = await postgres.newDatabase()
    const store = await openStore(readConfig({}, { DATABASE_URL: database.url }).database)
    const { pets, records } = store
    const animal = { name: 'Rex', categoryId: 1n, status: 'sold' as const }
    await pets.createMany(
      Array.from({ length: SOLD }, () => animal),
      { at: 1, by: 'acct_1' },
    )
    await pets.createMany(
      Array.from({ length: ALL }, () => animal),
      { at: 2, by: 'acct_2' },
    )
    const events = Array.from({ length: 2 * SOLD }, (_, index) => ({
      id: BigInt(index + 1),
      at: 3n,
      account_id: index < SOLD ? 'acct_1' : 'acct_2',
      action: index % 2 === 0 ? 'pet.changed' : 'session.started',
      via: 'console',
      subject: 'Rex (1)',
      detail: null,
      pet_id: null,
      data: null,
      batch_id: null,
    }))
    await records.write(kindOf('audit_events'), events)
    const sql = connectTo(database.url, { max: 1 })
    await sql`ANALYZE pets, audit_events`
    for (const after of [undefined, { petId: BigInt(ALL), eventId: BigInt(ALL), batchId: BigInt(ALL) }])
      assert.equal((await pets.changes({ by: 'acct_1', limit: limit - 1, after })).changes.length, limit - 1)
    assert.equal((await pets.changes({ limit: limit - 1 })).changes.length, limit - 1)
    await records.raiseLastId(kindOf('audit_events'), BigInt(2 * SOLD))
    await addAccount(store, 'acct_2')
    assert.deepEqual([...(await store.accounts.authors()).keys()], ['acct_2'])
    await store.close()
    const read = await sql<{ name: string; entries: number }[]>`
      SELECT indexrelname AS name, idx_tup_read::int AS entries FROM pg_stat_user_indexes
      WHERE relname IN ('pets', 'audit_events') AND idx_tup_read > 0 ORDER BY 1`
    await sql.end()
    assert.deepEqual(Object.fromEntries(read.map(({ name, entries }) => [name, entries])), {
      audit_events_of_pets: limit,
      // Two authors, each found by one entry.
      audit_events_of_pets_by_account: 2 * limit + 2,
      pets_added_in_console: 2 * limit + 2,
      pets_pkey: limit,
    })
  })

  for (const by of [undefined, 'acct_1']) {
    it(`are found and sorted by an index on SQLite, ${by === undefined ? 'all' : 'its own'}`, () => {
      for (const page of pagesOfChanges({ by, limit, after: { petId: 9n, eventId: 9n, batchId: 9n } })) {
        const index =
          /^SEARCH \w+ USING (INTEGER PRIMARY KEY|INDEX (\w+_of_pets\w*|pets_added_in_console|batches_by_account)) \(.*id<\?\)$/
        assert.match(planOf(page), index)
      }
    })
  }
})

/** A list for each combination of the filters, those of the console included, anywhere among the animals. */
const FILTERED = FIELD_NAMES.filter((name) => name === 'categoryId' || FILTER_NAMES.some((each) => each === name))
const LISTS = FILTERED.reduce<PetList[]>(
  (lists, name) => lists.flatMap((list) => [list, { [name]: samplePet[name], ...list }]),
  [{ limit }, { limit, before: BigInt(SOLD / 2) }, { limit, after: BigInt(SOLD / 2) }],
).flatMap((list) => (list.status === undefined ? [list, { ...list, inShop: true }] : [list]))
const columnsOf = ({ filters }: Page) => filters.map(({ column }) => column)
const isOfApi = (list: PetList) =>
  !list.inShop && FILTERED.every((name) => name in list === FILTER_NAMES.some((each) => each === name && each in list))

function planned(list: PetList, page: Page): RegExp {
  const bound = list.before !== undefined ? '(id|rowid)<\\?' : list.after !== undefined ? '(id|rowid)>\\?' : undefined
  const by = [...columnsOf(page).map((column) => `${column}=\\?`), ...(bound === undefined ? [] : [bound])].join(
    ' AND ',
  )
  if (page.filters.length === 0)
    return bound === undefined ? /^SCAN pets$/ : new RegExp(`USING INTEGER PRIMARY KEY \\(${by}\\)$`)
  return new RegExp(`^SEARCH pets USING ${isOfApi(list) ? 'COVERING ' : '(COVERING )?'}INDEX \\w+ \\(${by}\\)$`)
}

describe('A list with any filters', () => {
  it('reads no animal but its own on PostgreSQL, also where its own are all old', async () => {
    await using database = await postgres.newDatabase()
    const store = await openStore(readConfig({}, { DATABASE_URL: database.url }).database)
    const others = variants.filter(({ field, pet }) => FILTERED.includes(field) && pet[field] !== undefined)
    const animals = Array.from({ length: ALL }, (_, index) =>
      index < SOLD ? { ...samplePet, status: PET_STATUSES[index % 3]! } : others[index % others.length]!.pet,
    )
    await store.pets.createMany(animals)
    const sql = connectTo(database.url, { max: 1 })
    await sql`ANALYZE pets`
    const expected: Record<string, number> = {}
    for (const list of LISTS) {
      assert.equal((await store.pets.list(list)).length, limit)
      const asJson = isOfApi(list) && list.after === undefined ? [list, list, list] : []
      // Of one turn: pages with a cursor are read together, the same page without one once.
      for (const { count } of await Promise.all(asJson.map((each) => store.pets.list(each, 'json'))))
        assert.equal(count, limit)
      const rendered = list.before === undefined ? Math.min(1, asJson.length) : asJson.length
      for (const page of pagesOfList(list)) {
        const index = `(${[...columnsOf(page), 'id'].join(', ')})`
        expected[index] = (expected[index] ?? 0) + (1 + rendered) * limit
      }
    }
    // A connection hands in its counts at its end at the latest.
    await store.close()
    const read = await sql<{ columns: string; entries: number }[]>`
      SELECT substring(indexdef FROM '[(].*') AS columns, idx_tup_read::int AS entries
      FROM pg_indexes JOIN pg_stat_user_indexes ON indexname = indexrelname WHERE tablename = 'pets' AND idx_tup_read > 0`
    await sql.end()
    assert.deepEqual(Object.fromEntries(read.map(({ columns, entries }) => [columns, entries])), expected)
  })

  for (const [animals, values] of [
    [0, 1],
    [30, 3],
    [SOLD, 1],
    [SOLD, 20],
    [SOLD, SOLD],
  ] as const)
    it(`is found and sorted by an index on SQLite, one of the API by one that covers it, with and without statistics: ${animals} animals with ${values} values`, () => {
      using db = openDatabase(':memory:').db
      const add = db.prepare(`INSERT INTO pets (${PET_COLUMNS.join()}) VALUES (${PET_COLUMNS.map(() => '?').join()})`)
      for (let index = 0; index < animals; index += 1)
        add.run(...FIELD_NAMES.map((name) => (name === 'status' ? PET_STATUSES[index % 3]! : index % values)))
      for (const statistics of ['', 'ANALYZE']) {
        db.exec(statistics)
        for (const list of LISTS) {
          const pages = pagesOfList(list)
          assert.ok(pages.length === 1 || !isOfApi(list), 'a list of the API is one page')
          for (const page of pages) assert.match(planOf(page, db), planned(list, page), statistics)
        }
      }
    })

  it('is counted by an index on SQLite, of the store and of a category', () => {
    for (const query of [{}, { categoryId: 1n }]) {
      const page = pageOf({ ...query, status: 'sold', limit }, 'SELECT id FROM pets')
      assert.match(planOf(page), /SEARCH pets USING COVERING INDEX \w+ \((?:category_id=\? AND )?status=\?\)/)
    }
  })
})

/** Returns the plan of a page on SQLite, in one line. */
function planOf(page: Page, db?: DatabaseSync): string {
  return explain(sqlitePage(page).text, db).join()
}

function explain(text: string, db = openDatabase(':memory:').db): string[] {
  return db
    .prepare(`EXPLAIN QUERY PLAN ${text}`)
    .all()
    .map(({ detail }) => String(detail))
}

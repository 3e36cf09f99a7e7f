// The store's version moves with every write of data and with nothing else: every method of the port is in this table.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { readConfig } from '../src/config.ts'
import type { NewPet } from '../src/contract/pets.ts'
import { openStore } from '../src/store/open-store.ts'
import { kindOf, KINDS, type RecordStore } from '../src/store/records.ts'
import { openSqliteStore } from '../src/store/sqlite/sqlite-store.ts'
import type { CategoryStore } from '../src/store/category-store.ts'
import type { ImportStore } from '../src/store/imports.ts'
import type { PetStore, Store } from '../src/store/store.ts'
import { ENGINES } from '../assurance/harness/engines.ts'
import { samplePet } from '../assurance/harness/sample-pet.ts'
import {
  account,
  addAccount,
  addKey,
  event as eventOf,
  failedRequest,
  idempotency,
  petRow,
  session as sessionOf,
} from './sample-rows.ts'

const rex: NewPet = { ...samplePet, name: 'Rex', status: 'available' }
const event = eventOf('acct_1')
const session = sessionOf(1, 'acct_1')
const once = idempotency('acct_1', 'k', { now: 1 })
const pets = kindOf('pets')

/** What a method does to the version, and calls of it that show this on a store with something of everything. */
interface Case {
  kind: 'data' | 'bookkeeping' | 'read'
  calls: ((store: Store) => unknown)[]
}

const data = (...calls: Case['calls']): Case => ({ kind: 'data', calls })
const bookkeeping = (...calls: Case['calls']): Case => ({ kind: 'bookkeeping', calls })
const reads = (...calls: Case['calls']): Case => ({ kind: 'read', calls })

const PETS: Record<keyof PetStore, Case> = {
  create: data(
    (store) => store.pets.create(rex),
    (store) => store.pets.create(rex, { ...once, key: 'other' }),
  ),
  createMany: data((store) => store.pets.createMany([rex])),
  get: reads((store) => store.pets.get(1n)),
  addition: reads((store) => store.pets.addition(1n)),
  update: data((store) => store.pets.update(1n, rex, { ...rex, status: 'sold' }, event)),
  changes: reads((store) => store.pets.changes({ limit: 2 })),
  remove: data((store) => store.pets.remove(1n, rex, event)),
  list: reads((store) => store.pets.list({ limit: 2 })),
  search: reads((store) => store.pets.search({ words: ['rex'], limit: 2 })),
  indexWords: bookkeeping((store) => store.pets.indexWords()),
  countByStatus: reads((store) => store.pets.countByStatus()),
  countInCategory: reads((store) => store.pets.countInCategory(3n)),
  purgeIdempotencyRecords: bookkeeping((store) => store.pets.purgeIdempotencyRecords(2)),
}

const CATEGORIES: Record<keyof CategoryStore, Case> = {
  save: data((store) => store.categories.save({ number: 3n, name: 'Felines' }, 'Cats', event)),
  names: reads((store) => store.categories.names()),
}

const ACCOUNTS: Record<keyof Store['accounts'], Case> = {
  createAccount: data((store) => store.accounts.createAccount(account('acct_2'), event)),
  accountByEmail: reads((store) => store.accounts.accountByEmail('acct_1@example.com')),
  accountById: reads((store) => store.accounts.accountById('acct_1')),
  listAccounts: reads((store) => store.accounts.listAccounts()),
  setPassword: data((store) => store.accounts.setPassword('acct_1', 'new', event)),
  removeAccount: data((store) => store.accounts.removeAccount('acct_1', event)),
  pageOfPeople: reads((store) => store.accounts.pageOfPeople({ limit: 5 })),
  setRole: data((store) => store.accounts.setRole(account('acct_1'), 'keyless', event)),
  createLink: data((store) => store.accounts.createLink('other', undefined, 5, event)),
  linkByHash: reads((store) => store.accounts.linkByHash('hash', 1)),
  createKey: data((store) => addKey(store, 'key_2', 'acct_1', 2)),
  keyByHash: reads((store) => store.accounts.keyByHash(Buffer.alloc(32, 1))),
  keyById: reads((store) => store.accounts.keyById('key_1')),
  listKeys: reads((store) => store.accounts.listKeys()),
  pageOfKeys: reads((store) => store.accounts.pageOfKeys({ accountId: 'acct_1', active: true, now: 1, limit: 5 })),
  renameKey: data((store) => store.accounts.renameKey('key_1', 'desktop', event)),
  revokeKey: data((store) => store.accounts.revokeKey('key_1', 2, event)),
  recordUsage: bookkeeping((store) =>
    store.accounts.recordUsage(
      [{ keyId: 'key_1', hour: 1, operation: 'getPet', status: 200, calls: 1 }],
      new Map([['key_1', 2]]),
    ),
  ),
  usageSince: reads((store) => store.accounts.usageSince('acct_1', 0)),
  callsSince: reads((store) => store.accounts.callsSince(['key_1'], 0, 1)),
  recordFailures: bookkeeping((store) => store.accounts.recordFailures([failedRequest('acct_1')])),
  failedRequests: reads((store) => store.accounts.failedRequests('acct_1', 5)),
  purgeUsage: bookkeeping((store) => store.accounts.purgeUsage(5)),
  createSession: bookkeeping((store) => store.accounts.createSession(sessionOf(2, 'acct_1'), 'hash', event)),
  sessionByHash: reads((store) => store.accounts.sessionByHash(session.tokenHash)),
  touchSession: bookkeeping((store) => store.accounts.touchSession(session.tokenHash, 2)),
  endSession: bookkeeping((store) => store.accounts.endSession(session.tokenHash, event)),
  purgeSessions: bookkeeping((store) => store.accounts.purgeSessions(5, 5, 5)),
  appendEvent: bookkeeping((store) => store.accounts.appendEvent(event)),
  auditTrail: reads((store) => store.accounts.auditTrail('acct_1', 5)),
  changesOf: reads((store) => store.accounts.changesOf(1n, 5)),
}

const IMPORTS: Record<keyof ImportStore, Case> = {
  find: reads((store) => store.imports.find('hash')),
  unfinished: reads((store) => store.imports.unfinished()),
  begin: bookkeeping((store) => store.imports.begin({ hash: 'other', file: 'pets.csv', rowsTotal: 2 }, 1, false)),
  addRows: data((store) => store.imports.addRows({ hash: 'hash', rowsDone: 0, rowsTotal: 2 }, [rex], 1)),
}

const RECORDS: Record<keyof RecordStore, Case> = {
  unknown: reads((store) => store.records.unknown()),
  count: reads((store) => store.records.count(pets)),
  read: reads((store) => store.records.read(pets, undefined, 5)),
  write: data((store) => store.records.write(pets, [petRow(900n)])),
  remove: data((store) => store.records.remove(kindOf('accounts'), [{ id: 'acct_1' }])),
  lastId: reads((store) => store.records.lastId(pets)),
  raiseLastId: data((store) => store.records.raiseLastId(pets, 1000n)),
}

const STORE: Record<
  Exclude<
    keyof Store,
    'opened' | 'pets' | 'accounts' | 'categories' | 'imports' | 'records' | 'partitions' | 'giveUp' | 'close'
  >,
  Case
> = {
  version: reads((store) => store.version()),
  versionToRead: reads((store) => store.versionToRead()),
  environment: reads((store) => store.environment()),
  isDefaultEnvironment: reads((store) => store.isDefaultEnvironment()),
  recordEnvironment: data((store) => store.recordEnvironment('staging')),
  isUnfinishedCopy: reads((store) => store.isUnfinishedCopy()),
  setUnfinishedCopy: data((store) => store.setUnfinishedCopy(true)),
  connections: reads((store) => store.connections()),
  commits: reads((store) => store.commits()),
  ping: reads((store) => store.ping()),
}

/** Gives a call something to change. */
async function fill(store: Store): Promise<void> {
  await store.accounts.createAccount({ ...account('acct_0'), role: 'manager' }, event)
  await addAccount(store, 'acct_1')
  await store.accounts.createLink('hash', undefined, 5, event)
  await addKey(store, 'key_1', 'acct_1', 1)
  await store.accounts.createSession(session, 'hash', event)
  await store.pets.create(rex, once)
  await store.categories.save({ number: 3n, name: 'Cats' }, undefined, event)
  await store.imports.begin({ hash: 'hash', file: 'pets.csv', rowsTotal: 2 }, 1, false)
  // node:sqlite returns the last id that was assigned with every write, so each must work after one that is no safe integer.
  await store.records.raiseLastId(pets, 2n ** 60n)
  await store.pets.create(rex)
}

const BOOKKEEPING = new Set([
  'usage_counts',
  'failed_requests',
  'account_links',
  'idempotency_records',
  'imports',
  'audit_events',
])

/** All that is not bookkeeping. */
async function allData({ records }: Store): Promise<unknown> {
  const kinds = KINDS.filter(({ name }) => !BOOKKEEPING.has(name))
  const rows = await Promise.all(kinds.map((kind) => records.read(kind, undefined, 100)))
  return rows.flat().map((row) => ({ ...row, last_used_at: null }))
}

/** The names of the methods that an engine really has, private ones aside. */
function methodsOf(part: object): string[] {
  const prototype: unknown = Object.getPrototypeOf(part)
  return Object.getOwnPropertyNames(prototype === Object.prototype ? part : prototype).filter(
    (name) => name !== 'constructor',
  )
}

describe('the version of a store', { concurrency: false }, () => {
  for (const engine of ENGINES) {
    it(`is tested for every method that there is on ${engine.name}`, async () => {
      await using database = await engine.newDatabase()
      const store = await openStore(readConfig({ database: database.url }, {}).database)
      try {
        for (const [part, cases] of [
          [store.pets, PETS],
          [store.accounts, ACCOUNTS],
          [store.categories, CATEGORIES],
          [store.imports, IMPORTS],
          [store.records, RECORDS],
        ] as const) {
          assert.deepEqual(methodsOf(part).toSorted(), Object.keys(cases).toSorted())
        }
        assert.deepEqual(
          methodsOf(store).toSorted(),
          [
            'accounts',
            'categories',
            'close',
            'giveUp',
            'imports',
            'opened',
            'partitions',
            'pets',
            'records',
            ...Object.keys(STORE),
          ].toSorted(),
        )
      } finally {
        await store.close()
      }
    })
  }

  const cases = [PETS, ACCOUNTS, CATEGORIES, IMPORTS, RECORDS, STORE].flatMap((part) => Object.entries<Case>(part))
  for (const [name, { kind, calls }] of cases) {
    it(`${kind === 'data' ? 'moves' : 'stays'} with ${name}, which ${kind === 'read' ? 'reads' : `writes ${kind}`}`, async () => {
      const store = openSqliteStore(':memory:')
      try {
        await fill(store)
        for (const call of calls) {
          const [version, before] = [store.version(), await allData(store)]
          await call(store)
          assert.equal(store.version() !== version, kind === 'data')
          if (kind !== 'data') assert.deepEqual(await allData(store), before)
        }
      } finally {
        await store.close()
      }
    })
  }
})

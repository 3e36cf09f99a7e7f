// The store's version moves with every write and with nothing else: every method of the port is in this table.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { readConfig } from '../../src/config.ts'
import type { NewPet } from '../../src/contract/pets.ts'
import { openStore } from '../../src/store/opening/open-store.ts'
import { kindOf, type RecordStore } from '../../src/store/records.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import type { BatchStore, NewBatch } from '../../src/store/batches/batch-store.ts'
import type { CategoryStore } from '../../src/store/category-store.ts'
import type { ImportStore } from '../../src/store/imports.ts'
import type { PetStore, Store } from '../../src/store/store.ts'
import { ENGINES } from '../harness/databases/engines.ts'
import { samplePet } from '../harness/databases/sample-pet.ts'
import type { UploadStore } from '../../src/store/uploads.ts'
import {
  account,
  addAccount,
  addKey,
  apiKey,
  event as eventOf,
  failedRequest,
  idempotency,
  petRow,
  session as sessionOf,
} from '../harness/databases/sample-rows.ts'

const rex: NewPet = { ...samplePet, name: 'Rex', status: 'available' }
const event = eventOf('acct_1')
const session = sessionOf(1, 'acct_1')
const once = idempotency('acct_1', 'k', { now: 1 })
const pets = kindOf('pets')

/** What a method does to the version, and calls of it that show this on a store with something of everything. */
interface Case {
  kind: 'write' | 'read'
  calls: ((store: Store) => unknown)[]
}

const writes = (...calls: Case['calls']): Case => ({ kind: 'write', calls })
const reads = (...calls: Case['calls']): Case => ({ kind: 'read', calls })

const PETS: Record<keyof PetStore, Case> = {
  create: writes(
    (store) => store.pets.create(rex),
    (store) => store.pets.create(rex, { ...once, key: 'other' }),
  ),
  createMany: writes((store) => store.pets.createMany([rex])),
  get: reads((store) => store.pets.get(1n)),
  addition: reads((store) => store.pets.addition(1n)),
  additions: reads((store) => store.pets.additions([1n])),
  update: writes((store) => store.pets.update(1n, rex, { ...rex, status: 'sold' }, event)),
  changes: reads((store) => store.pets.changes({ limit: 2 })),
  remove: writes((store) => store.pets.remove(1n, rex, event)),
  list: reads(
    (store) => store.pets.list({ limit: 2 }),
    (store) => store.pets.list({ limit: 2 }, 'json'),
  ),
  search: reads((store) => store.pets.search({ words: ['rex'], limit: 2 })),
  countByStatus: reads((store) => store.pets.countByStatus()),
  purgeIdempotencyRecords: writes((store) => store.pets.purgeIdempotencyRecords(2)),
}

const one: NewBatch = { form: 'other', action: 'changed', data: { field: 'status', to: 'sold' } }

const BATCHES: Record<keyof BatchStore, Case> = {
  begin: writes((store) => store.batches.begin(one, [], event)),
  advance: writes((store) => store.batches.advance(1n, event)),
  undo: writes((store) => store.batches.undo(1n, event)),
  find: reads((store) => store.batches.find(1n)),
  begunBy: reads((store) => store.batches.begunBy('other')),
  leftAlone: reads((store) => store.batches.leftAlone(1n, 5)),
  added: reads((store) => store.batches.added(1n, 5)),
  purge: writes((store) => store.batches.purge(2 * event.at)),
}

const CATEGORIES: Record<keyof CategoryStore, Case> = {
  save: writes((store) => store.categories.save({ number: 3n, name: 'Felines' }, 'Cats', event)),
  remove: writes((store) => store.categories.remove({ number: 3n, name: 'Cats' }, event)),
  removed: reads((store) => store.categories.removed()),
  names: reads((store) => store.categories.names()),
}

const ACCOUNTS: Record<keyof Store['accounts'], Case> = {
  createAccount: writes((store) => store.accounts.createAccount(account('acct_2'), event)),
  accountByEmail: reads((store) => store.accounts.accountByEmail('acct_1@example.com')),
  accountByName: reads((store) => store.accounts.accountByName('Zoë')),
  accountById: reads((store) => store.accounts.accountById('acct_1')),
  namesOf: reads((store) => store.accounts.namesOf(['acct_1'])),
  listAccounts: reads((store) => store.accounts.listAccounts()),
  setPassword: writes((store) => store.accounts.setPassword('acct_1', 'new', event)),
  removeAccount: writes((store) => store.accounts.removeAccount('acct_1', event)),
  pageOfPeople: reads((store) => store.accounts.pageOfPeople({ limit: 5 })),
  setName: writes((store) => store.accounts.setName('acct_1', 'Zoë', event)),
  setRole: writes((store) => store.accounts.setRole(account('acct_1'), 'keyless', event)),
  createLink: writes((store) => store.accounts.createLink('other', undefined, 5, eventOf('acct_0'))),
  linkByHash: reads((store) => store.accounts.linkByHash('hash', 1)),
  links: reads((store) => store.accounts.links(1, 5)),
  removeLink: writes((store) => store.accounts.removeLink('hash', event)),
  lastEvent: reads((store) => store.accounts.lastEvent('account.%', 'someone')),
  createKey: writes((store) => addKey(store, 'key_2', 'acct_1', 2)),
  keyByHash: reads((store) => store.accounts.keyByHash(Buffer.alloc(32, 1))),
  keyById: reads((store) => store.accounts.keyById('key_1')),
  listKeys: reads((store) => store.accounts.listKeys()),
  pageOfKeys: reads((store) => store.accounts.pageOfKeys({ accountId: 'acct_1', active: true, now: 1, limit: 5 })),
  renameKey: writes((store) => store.accounts.renameKey(apiKey('key_1', 'acct_1'), 'desktop', event)),
  revokeKey: writes((store) => store.accounts.revokeKey('key_1', 2, event)),
  recordUsage: writes((store) =>
    store.accounts.recordUsage(
      [{ keyId: 'key_1', hour: 1, operation: 'getPet', status: 200, calls: 1 }],
      new Map([['key_1', 2]]),
    ),
  ),
  usageSince: reads((store) => store.accounts.usageSince('acct_1', 0)),
  callsSince: reads((store) => store.accounts.callsSince(['key_1'], 0)),
  recordFailures: writes((store) => store.accounts.recordFailures([failedRequest('acct_1')])),
  failedRequests: reads((store) => store.accounts.failedRequests('acct_1', 5)),
  purgeUsage: writes((store) => store.accounts.purgeUsage(5)),
  createSession: writes((store) => store.accounts.createSession(sessionOf(2, 'acct_1'), 'hash', event)),
  sessionByHash: reads((store) => store.accounts.sessionByHash(session.tokenHash)),
  touchSession: writes((store) => store.accounts.touchSession(session.tokenHash, 2)),
  endSession: writes((store) => store.accounts.endSession(session.tokenHash, event)),
  purgeSessions: writes((store) => store.accounts.purgeSessions(5, 5, 5)),
  appendEvent: writes((store) => store.accounts.appendEvent(event)),
  authors: reads((store) => store.accounts.authors()),
  auditTrail: reads((store) => store.accounts.auditTrail('acct_1', 5)),
  securityLog: reads((store) => store.accounts.securityLog('acct_1')),
  changesOf: reads((store) => store.accounts.changesOf(1n, 5)),
  statusChanges: reads((store) => store.accounts.statusChanges([1n])),
  changesIn: reads((store) => store.accounts.changesIn(1n, 5)),
}

const IMPORTS: Record<keyof ImportStore, Case> = {
  find: reads((store) => store.imports.find('hash')),
  unfinished: reads((store) => store.imports.unfinished()),
  begin: writes((store) => store.imports.begin({ hash: 'other', file: 'pets.csv', rowsTotal: 2 }, 1, false)),
  beginPlanned: writes((store) => store.imports.beginPlanned({ hash: 'other', file: 'pets.csv' }, '{}', 2, event)),
  addRows: writes((store) => store.imports.addRows({ hash: 'hash', rowsDone: 0, rowsTotal: 2 }, [rex], 1)),
}

const upload = { id: 'upload_1', name: 'pets.csv' }

const UPLOADS: Record<keyof UploadStore, Case> = {
  begin: writes((store) => store.uploads.begin({ ...upload, id: 'upload_2' }, 'acct_1', 1)),
  append: writes((store) => store.uploads.append('upload_1', 1, Buffer.from('Rex'))),
  complete: writes((store) => store.uploads.complete('upload_1', 3, 'hash')),
  savePlan: writes((store) => store.uploads.savePlan({ id: 'upload_1' }, '{}')),
  find: reads((store) => store.uploads.find('upload_1', 'acct_1', 0)),
  part: reads((store) => store.uploads.part('upload_1', 0)),
  purge: writes((store) => store.uploads.purge(2)),
}

const RECORDS: Record<keyof RecordStore, Case> = {
  unknown: reads((store) => store.records.unknown()),
  count: reads((store) => store.records.count(pets)),
  read: reads((store) => store.records.read(pets, undefined, 5)),
  write: writes((store) => store.records.write(pets, [petRow(900n)])),
  lastId: reads((store) => store.records.lastId(pets)),
  raiseLastId: writes((store) => store.records.raiseLastId(pets, 1000n)),
}

const STORE = {
  version: reads((store) => store.version()),
  versionAfterSync: reads((store) => store.versionAfterSync()),
  environment: reads((store) => store.environment()),
  isDefaultEnvironment: reads((store) => store.isDefaultEnvironment()),
  recordEnvironment: writes((store) => store.recordEnvironment('staging')),
  isUnfinishedCopy: reads((store) => store.isUnfinishedCopy()),
  setUnfinishedCopy: writes((store) => store.setUnfinishedCopy(true)),
  connections: reads((store) => store.connections()),
  commits: reads((store) => store.commits()),
  ping: reads((store) => store.ping()),
}

const UNTRIED = ['opened', 'giveUp', 'close'] as const
type Part = Exclude<keyof Store, keyof typeof STORE | (typeof UNTRIED)[number]>
const PARTS: { [Name in Part]: Record<keyof Store[Name], Case> } = {
  pets: PETS,
  accounts: ACCOUNTS,
  batches: BATCHES,
  categories: CATEGORIES,
  imports: IMPORTS,
  uploads: UPLOADS,
  records: RECORDS,
}

/** What is written without an event of the audit trail: animals say themselves who added them, and the service keeps its own books. */
const WITHOUT_EVENT = [
  /^pets\.(?:create|createMany|purgeIdempotencyRecords)$/,
  /^accounts\.(?:recordUsage|recordFailures|purgeUsage|touchSession|purgeSessions)$/,
  /^(?:imports|uploads|records|store)\./,
  /^batches\.(?:begin|undo|purge)$/,
]

/** Gives a call something to change. */
async function fill(store: Store): Promise<void> {
  await store.accounts.createAccount({ ...account('acct_0'), role: 'manager' }, event)
  await addAccount(store, 'acct_1')
  await store.accounts.createLink('hash', undefined, 2 * event.at, eventOf('acct_0'))
  await addKey(store, 'key_1', 'acct_1', 1)
  await store.accounts.createSession(session, 'hash', event)
  await store.pets.create(rex, once)
  await store.categories.save({ number: 3n, name: 'Cats' }, undefined, event)
  await store.batches.begin({ ...one, form: 'f' }, [{ id: 1n, former: rex }], event)
  await store.uploads.begin(upload, 'acct_1', 1)
  await store.uploads.append('upload_1', 0, Buffer.from('Rex'))
  await store.imports.begin({ hash: 'hash', file: 'pets.csv', rowsTotal: 2 }, 1, false)
  // node:sqlite returns the last id that was assigned with every write, so each must work after one that is no safe integer.
  await store.records.raiseLastId(pets, 2n ** 60n)
  await store.pets.create(rex)
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
        for (const [name, cases] of Object.entries(PARTS))
          assert.deepEqual(methodsOf(store[name as Part]).toSorted(), Object.keys(cases).toSorted())
        const names = [...UNTRIED, ...Object.keys(PARTS), ...Object.keys(STORE)]
        assert.deepEqual(methodsOf(store).toSorted(), names.toSorted())
      } finally {
        await store.close()
      }
    })
  }

  const cases = Object.entries({ ...PARTS, store: STORE }).flatMap(([part, methods]) =>
    Object.entries<Case>(methods).map(([name, each]) => [`${part}.${name}`, each] as const),
  )
  for (const [name, { kind, calls }] of cases) {
    it(`${kind === 'write' ? 'moves' : 'stays'} with ${name}, which ${kind}s, and a change says who made it`, async () => {
      const store = openSqliteStore(':memory:')
      try {
        await fill(store)
        for (const call of calls) {
          const [version, events] = [store.version(), await store.records.count(kindOf('audit_events'))]
          await call(store)
          assert.equal(store.version() !== version, kind === 'write')
          const isNoted = (await store.records.count(kindOf('audit_events'))) > events
          assert.equal(
            isNoted,
            kind === 'write' && !WITHOUT_EVENT.some((names) => names.test(name)),
            'it adds an event',
          )
        }
      } finally {
        await store.close()
      }
    })
  }
})

// Values that a newer program wrote to the same database: this one shows them as they are, and fails nowhere.
import assert from 'node:assert/strict'
import { mkdtempDisposable } from 'node:fs/promises'
import { readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { ENGINES, sqlite, type TestDatabase } from '../harness/databases/engines.ts'
import { asTexts, samplePet } from '../harness/databases/sample-pet.ts'
import type { FieldProblem } from '../../src/contract/errors.ts'
import { FILTER_NAMES } from '../../src/contract/list-query.ts'
import { FIELD_LIST } from '../../src/contract/pets.ts'
import { addCategory } from '../../src/store/category-store.ts'
import { KINDS } from '../../src/store/records.ts'
import { type ConsoleClient, MEMBER_PAGES, signedInManager } from '../harness/connections/console-client.ts'
import { askDatabase, readSchema } from '../harness/databases/database-schema.ts'
import { type Petstore, startPetstore } from '../harness/harness.ts'
import { petstore } from '../harness/programs/in-process-command.ts'
import { account as accountOf, event } from '../harness/databases/sample-rows.ts'
import { withStore } from '../harness/databases/with-store.ts'

/** One value that a later release might have, and one that every object of JavaScript has. */
const NEWER = ['later.added', 'constructor']

/** The columns of text in which this program has a list of the values that it knows; all others hold what people or clients wrote. */
const LISTED = {
  'audit_events.action': NEWER,
  'audit_events.via': NEWER,
  'failed_requests.operation': NEWER,
  'failed_requests.code': NEWER,
  'usage_counts.operation': NEWER,
  'api_keys.environment': NEWER,
  'accounts.role': NEWER,
  'pets.status': NEWER,
  'audit_events.data': [
    '{"from":{"mood":"calm","status":"sold"},"to":{"mood":"wild","status":"later.added"},"how":1}',
    // Of a release that records something else, or damaged.
    '{"restored":true}',
    '{"from":{"categoryId":3,"name":null},"to":null,"categories":[],"added":"x"}',
    '{"from":[],"to":{"status":{}},"categories":null,"added":{"at":"soon","by":7}}',
    '{"from":{},"added":{"at":9000000000000000}}',
    'null',
    '[1]',
    '7',
    '{"from":{"na',
    '',
  ],
}
/** Of batches, and of the animals in them. */
const LISTED_OF_BATCHES = {
  'batches.action': [...NEWER, 'changed', 'imported', 'undone'],
  'batches.via': NEWER,
  'batches.data': [
    '{"field":"mood","to":"calm"}',
    '{"field":"status","to":"later.added"}',
    '{"field":7,"file":[]}',
    'null',
    '{"na',
    '',
  ],
  'batch_pets.former': [
    '{"name":"Rex","categoryId":"3","status":"later.added","mood":"calm"}',
    '{"name":7,"categoryId":"x"}',
    '[1]',
    '',
  ],
  'batch_pets.state': [...NEWER, 'left', 'changed'],
}
const FREE = [
  'batches.account_id',
  'batches.form',
  ...['id', 'email', 'email_folded', 'password_hash', 'name', 'name_folded'].map((column) => `accounts.${column}`),
  ...['id', 'account_id', 'name', 'last_four'].map((column) => `api_keys.${column}`),
  ...['hash', 'account_id', 'made_by', 'replaces_hash', 'name', 'role'].map((column) => `account_links.${column}`),
  'usage_counts.key_id',
  ...['account_id', 'key_id', 'request_id', 'message'].map((column) => `failed_requests.${column}`),
  ...['account_id', 'key'].map((column) => `idempotency_records.${column}`),
  ...['account_id', 'subject', 'detail'].map((column) => `audit_events.${column}`),
  ...['id', 'name'].map((column) => `former_people.${column}`),
  // The plan is tried in test/console/import.test.ts.
  ...['hash', 'file', 'plan'].map((column) => `imports.${column}`),
  ...FIELD_LIST.filter(({ schema }) => schema.type === 'string' && !('enum' in schema)).map(
    ({ column }) => `pets.${column}`,
  ),
  'pets.added_by',
  'categories.name',
  'categories.name_folded',
]

it('Each column of text is either free or tried below with values of a newer program', async () => {
  await using database = await sqlite.newEmptyDatabase()
  await withStore(database.url, async () => {})
  const schema = await readSchema(database.url)
  const texts = KINDS.flatMap(({ name, columns }) =>
    columns.filter((column) => schema[name]![column]!.type === 'text').map((column) => `${name}.${column}`),
  )
  assert.deepEqual(texts.toSorted(), [...Object.keys({ ...LISTED, ...LISTED_OF_BATCHES }), ...FREE].toSorted())
})

/** What a newer program does to the checks of both columns. */
const WITHOUT_CHECKS: Record<string, readonly string[]> = {
  PostgreSQL: [
    'ALTER TABLE pets DROP CONSTRAINT pets_status_check',
    'ALTER TABLE api_keys DROP CONSTRAINT api_keys_environment_check',
  ],
  SQLite: [
    'PRAGMA writable_schema = 1',
    "UPDATE sqlite_schema SET sql = replace(replace(sql, ' CHECK (status IN', ' CHECK (status || 1 NOT IN'), ' CHECK (environment IN', ' CHECK (environment || 1 NOT IN')",
  ],
}

for (const engine of ENGINES) {
  describe(`Values of a newer program on ${engine.name}`, { concurrency: false }, () => {
    let database: TestDatabase
    let service: Petstore
    let person: ConsoleClient
    let animals: bigint[]
    let batches: number
    before(async () => {
      database = await engine.newEmptyDatabase()
      await petstore(['migrate', '--environment', 'staging', '--database', database.url])
      await askDatabase(database.url, ...WITHOUT_CHECKS[engine.name]!)
      service = await startPetstore({ database: database.url })
      const { account, apiKey, store } = service
      animals = []
      for (const name of NEWER) {
        const created = await store.pets.create({ ...samplePet, name: `of ${name}`, status: 'sold' })
        assert.ok('pet' in created)
        animals.push(created.pet.id)
      }
      const now = Date.now()
      const hour = now - (now % 3_600_000)
      const bytes = (text: string) => (engine.name === 'PostgreSQL' ? `'${text}'::bytea` : `CAST('${text}' AS BLOB)`)
      const rows = NEWER.flatMap((value, index) => [
        `INSERT INTO audit_events (at, account_id, action, via, subject) VALUES (${now}, '${account.id}', '${value}', '${value}', 'x (${animals[index]})')`,
        ...['pet.changed', 'pet.removed'].flatMap((action) =>
          LISTED['audit_events.data'].map(
            (data) => `INSERT INTO audit_events (at, account_id, action, via, subject, pet_id, data)
              VALUES (${now}, '${account.id}', '${action}', 'console', 'x (${animals[index]})', ${animals[index]}, '${data}')`,
          ),
        ),
        `INSERT INTO failed_requests (at, account_id, key_id, request_id, operation, status, code, message)
           VALUES (${now}, '${account.id}', '${apiKey.id}', 'r', '${value}', 499, '${value}', 'm')`,
        `INSERT INTO usage_counts (key_id, hour, operation, status, calls) VALUES ('${apiKey.id}', ${hour}, '${value}', 799, 7)`,
        `INSERT INTO api_keys (id, account_id, name, hash, environment, last_four, created_at)
           VALUES ('key_${index}', '${account.id}', 'of ${value}', ${bytes(value)}, '${value}', 'abcd', ${now})`,
        `UPDATE pets SET status = '${value}' WHERE id = ${animals[index]}`,
        `INSERT INTO accounts (id, email, email_folded, password_hash, created_at, role)
           VALUES ('acct_${index}', '${value}', '${value}', 'x', 1, '${value}')`,
      ])
      const { 'batches.action': actions, 'batches.data': batchData, 'batch_pets.former': formers } = LISTED_OF_BATCHES
      const lists = actions.flatMap((action) => batchData.map((data) => [action, data]))
      const ofLists = lists.flatMap(([action, data], index) => [
        `INSERT INTO batches (at, account_id, via, action, data, total, done, changed) VALUES (${now}, '${account.id}', '${NEWER[0]}', '${action}', '${data}', 4, 1, 1)`,
        ...LISTED_OF_BATCHES['batch_pets.state'].map(
          (state, nth) =>
            `INSERT INTO batch_pets (batch_id, pet_id, former, state) VALUES (${index + 1}, ${nth}, '${formers[(index + nth) % formers.length]}', '${state}')`,
        ),
      ])
      batches = lists.length
      await askDatabase(database.url, ...rows, ...ofLists)
      person = await signedInManager(service)
    })
    after(async () => {
      await service[Symbol.asyncDispose]()
      await database[Symbol.asyncDispose]()
    })

    it('are on every page that shows such values', async () => {
      const pages: Record<string, readonly RegExp[]> = {
        ...Object.fromEntries(MEMBER_PAGES.map((page) => [page, []])),
        '/account': NEWER.map((value) => new RegExp(`"mark off">${value}<.*, ${value}<`, 's')),
        '/activity': NEWER.flatMap((value) => [
          new RegExp(`<th scope="row"><code>${value}<`),
          new RegExp(`<code>${value}</code> <code class="quiet-text">${value}<`),
        ]),
        '/keys': NEWER.map((value) => new RegExp(`${value}…abcd`)),
        '/animals?status=all': NEWER.map((value) => new RegExp(`"mark ${value}">${value}<`)),
        '/animals?q=of&status=all': [
          />Animals found for/,
          ...NEWER.map((value) => new RegExp(`"mark ${value}">${value}<`)),
        ],
        ...Object.fromEntries(
          animals.map((id, index) => [
            `/animals/${id}`,
            [new RegExp(`selected>${NEWER[index]}<`), />Details unknown</],
          ]),
        ),
        '/animals/changes': [/Status: Sold → later\.added/],
        ...Object.fromEntries(
          Array.from({ length: batches }, (_, index) => [`/animals/batches/${index + 1}`, [/4 animals/]]),
        ),
        '/animals?batch=1': [/<strong>1 animal<\/strong> changed/],
        '/animals.csv': NEWER.map((value) => new RegExp(`,${value},`)),
        '/people': NEWER.map((value) => new RegExp(`data-label="Role">${value}<`)),
        '/people/keys': NEWER.map((value) => new RegExp(`${value}…abcd`)),
        '/people/acct_0': [/selected>later\.added</],
        '/people/acct_1/remove': [/<p>constructor\. Their keys/],
        '/keys/key_0/rename': [new RegExp(`${NEWER[0]}…abcd`)],
        '/keys/key_0/revoke': [new RegExp(`${NEWER[0]}…abcd`)],
      }
      for (const [page, shown] of Object.entries(pages)) {
        const { status, body } = await person.get(page)
        assert.equal(status, 200, page)
        assert.doesNotMatch(body, /undefined|NaN|\[native code|\[object/, page)
        for (const pattern of shown) assert.match(body, pattern, page)
      }
      assert.match((await person.get('/animals')).body, /All<\/span> <span class="segment-count">\d+</)
    })

    it('of many animals at once are neither gone on with nor taken back, unless this program knows how', async () => {
      const { csrf = '' } = await person.hiddenFields('/animals/new')
      for (let id = 1; id <= batches; id += 1)
        for (const does of ['Continue', 'Undo'])
          assert.equal((await person.post(`/animals/batches/${id}`, { csrf, do: does })).status, 303)
      assert.deepEqual(
        await Promise.all(animals.map((id) => service.store.pets.get(id).then((pet) => pet?.status))),
        NEWER,
      )
    })

    it('are in the answers of the API', async () => {
      const listed = (await (await service.call('/pets')).json()) as { id: number; status: string }[]
      assert.deepEqual(
        listed.map(({ status }) => status),
        NEWER.toReversed(),
      )
      const one = (await (await service.call(`/pets/${animals[0]}`)).json()) as Record<string, string>
      assert.equal(one['status'], NEWER[0])
      for (const name of FILTER_NAMES.filter((each) => each !== 'status')) {
        const found = await service.call(`/pets?${new URLSearchParams({ [name]: one[name]! }).toString()}`)
        assert.deepEqual(((await found.json()) as object[]).at(-1), one, name)
      }
    })

    it('stay when something else of the same animal is changed, or nothing of a person', async () => {
      const [id] = animals
      const path = `/animals/${id}`
      const { location } = await person.submit(path, path, {
        ...asTexts(samplePet),
        name: 'Renamed',
        status: NEWER[0]!,
      })
      assert.equal(location, `${path}?changed=yes`)
      assert.deepEqual(await service.store.pets.get(id!), { id, ...samplePet, name: 'Renamed', status: NEWER[0] })
      const saved = await person.fillIn('/people/acct_0', { role: NEWER[0]! })
      assert.equal(saved.location, '/people/acct_0')
    })

    it('are honoured: names of people, open and closed accounts, the role of an invitation, a number whose name was removed', async () => {
      const { store, account } = service
      const history = async () => (await person.get('/animals/changes')).body.replaceAll(/<[^>]*>/g, '')
      for (const sql of [
        `UPDATE accounts SET name = 'Zoë', name_folded = 'zoe' WHERE id = 'acct_0'`,
        `INSERT INTO audit_events (at, account_id, action, via, subject, pet_id) VALUES (${Date.now()}, 'acct_0', 'pet.removed', 'console', 'Rex (7)', 7)`,
        `INSERT INTO account_links (hash, made_by, expires_at, name, role) VALUES ('h', '${account.id}', 9, 'Ben', 'keyless')`,
        `INSERT INTO categories (number, name, name_folded, removed_at) VALUES (1, 'Dogs', 'dogs', 5)`,
      ])
        await askDatabase(database.url, sql)
      assert.match(await history(), /Zoë, /)
      await store.accounts.removeAccount('acct_0', event('acct_0', 'account.removed'))
      assert.match(await history(), /Zoë \(left\), /)
      assert.ok(await store.accounts.createAccount(accountOf('invited'), event('invited'), 'h'))
      assert.equal((await store.accounts.accountById('invited'))?.role, 'keyless')

      assert.equal((await store.categories.names()).names.get(1n), undefined)
      const by = { at: 1, accountId: 'someone', via: 'test' }
      const add = (name: string, digits: string) => addCategory(store, name, digits, by)
      assert.match(((await add('Cats', '1')) as FieldProblem).message, /^Dogs \(1\) was removed: add it again/)
      assert.deepEqual(await add('Cats', ''), { number: 2n, name: 'Cats' })
      assert.deepEqual(await add('dogs', ''), { number: 1n, name: 'dogs' })
      assert.equal((await store.categories.names()).names.get(1n), 'dogs')
    })

    it('are printed by every command that shows such values', async () => {
      await using folder = await mkdtempDisposable(join(tmpdir(), 'petstore-test-'))
      const run = async (...words: string[]) => {
        const { code, stdout, stderr } = await petstore([...words, '--database', database.url], { isTTY: true })
        assert.deepEqual([code, words], [0, words], stderr)
        assert.doesNotMatch(stdout + stderr, /undefined|NaN|native code|\[object/, words.join(' '))
        return stdout
      }
      for (const words of [['account', 'list'], ['doctor'], ['doctor', '--json'], ['environment', 'show']])
        await run(...words)
      for (const json of [[], ['--json']])
        for (const value of NEWER) assert.ok((await run('key', 'list', ...json)).includes(`${value}…abcd`))
      for (const format of ['csv', 'jsonl']) {
        const file = join(folder.path, `animals.${format}`)
        await run('export', file)
        for (const value of NEWER) assert.ok(readFileSync(file, 'utf8').includes(value), format)
      }
    })

    it('of an environment let no service start, and no command make keys', async () => {
      await using other = await engine.newEmptyDatabase()
      await petstore(['migrate', '--database', other.url])
      await petstore(['account', 'create', 'you@example.com', '--password-stdin', '--database', other.url], {
        input: 'correct horse battery',
      })
      await askDatabase(other.url, ...WITHOUT_CHECKS[engine.name]!)
      await askDatabase(other.url, "UPDATE store_facts SET value = 'sandbox' WHERE name = 'environment'")
      const words = [
        ['key', 'create', '--account', 'you@example.com', '--name', 'x'],
        ['serve', '--port', '0'],
      ]
      for (const line of words) {
        const { code, stdout, stderr } = await petstore([...line, '--database', other.url])
        assert.deepEqual([code, stdout], [1, ''], line.join(' '))
        assert.match(stderr, /environment sandbox, which this program does not know\. Run the newer program/)
      }
      assert.equal((await petstore(['environment', 'show', '--database', other.url])).stdout, 'sandbox\n')
    })
  })
}

// A role of PostgreSQL that may do less than the service needs: doctor and the start name what to grant, and that suffices.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import connectTo from 'postgres'
import { postgres, type TestDatabase } from '../harness/databases/engines.ts'
import { until } from '../harness/until.ts'
import type { Check } from '../../src/store/database/check.ts'
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts'
import { changedProgram } from '../harness/programs/changed-program.ts'
import { Folder, serve } from '../harness/programs/command.ts'
import { ConsoleClient } from '../harness/connections/console-client.ts'
import { MIGRATIONS } from '../harness/databases/database-schema.ts'
import { PASSWORD, startPetstore } from '../harness/harness.ts'
import { petstore } from '../harness/programs/in-process-command.ts'
import { event } from '../harness/databases/sample-rows.ts'

async function newMigratedDatabase(): Promise<TestDatabase> {
  const database = await postgres.newEmptyDatabase()
  await petstore(['migrate', '--environment', 'staging', '--database', database.url])
  return database
}

/** A migrated database, its own or a shared one, and the address of a role that may only log in to it. */
async function withRole(work: (parts: Parts) => Promise<void>, shared?: TestDatabase): Promise<void> {
  await using parts = new AsyncDisposableStack()
  const database = shared ?? parts.use(await newMigratedDatabase())
  const sql = connectTo(database.url, { max: 1, onnotice: () => {} })
  parts.defer(() => sql.end({ timeout: 1 }))
  const role = `"shop-${randomUUID()}"`
  await sql.unsafe(`CREATE ROLE ${role} LOGIN PASSWORD 'secret'`)
  parts.defer(async () => {
    await sql.unsafe(`DROP OWNED BY ${role} CASCADE; DROP ROLE ${role}`)
  })
  const url = new URL(database.url)
  url.username = role.slice(1, -1)
  url.password = 'secret'
  await work({ url: url.href, role, run: async (statement) => void (await sql.unsafe(statement)) })
}

interface Parts {
  url: string
  role: string
  /** Runs a statement as the owner. */
  run: (statement: string) => Promise<void>
}

async function examine(url: string) {
  const { code, stdout, stderr } = await petstore(['doctor', '--json', '--database', url])
  const checks = (JSON.parse(stdout) as { checks: Check[] }).checks
  assert.doesNotMatch(stderr, /\n +at /, 'a stack trace')
  return { code, problem: checks.find(({ state }) => state === 'problem') }
}

/** Runs the statements that a fix names, except the one for tables of later releases. */
async function follow(run: Parts['run'], fix = ''): Promise<void> {
  const statements = fix.match(/GRANT [^;]*;/g) ?? assert.fail(`no statement in: ${fix}`)
  for (const statement of statements.slice(0, -1)) await run(statement)
}

const openStoreToServe = (url: string) => openPostgresStore(url, { serving: { checkpoints: true, onBroken: () => {} } })

const all = (role: string) =>
  `GRANT ALL ON ALL TABLES IN SCHEMA public TO ${role}; GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO ${role}`

describe('A role that lacks rights', () => {
  let shared: TestDatabase
  before(async () => void (shared = await newMigratedDatabase()))
  after(() => shared[Symbol.asyncDispose]())

  const cases: [what: string, rights: (role: string) => string, found: RegExp, grants: RegExp][] = [
    [
      'on the table of migrations',
      (role) => `${all(role)}; REVOKE ALL ON store_migrations FROM ${role}`,
      /^the role "shop-.*" lacks rights on store_migrations$/,
      /^Run as \w+: GRANT SELECT ON public\.store_migrations TO "shop-[^"]*"; ALTER DEFAULT PRIVILEGES FOR ROLE \w+ IN SCHEMA public GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO "shop-/,
    ],
    [
      'on the tables of files',
      (role) => `${all(role)}; REVOKE ALL ON uploads, upload_parts FROM ${role}`,
      /lacks rights on upload_parts, uploads$/,
      /GRANT SELECT, INSERT, UPDATE, DELETE ON public\.upload_parts, public\.uploads TO/,
    ],
    [
      'to write anything',
      (role) => `GRANT SELECT ON ALL TABLES IN SCHEMA public TO ${role}`,
      /lacks rights on account_links, .*, usage_counts$/,
      /GRANT INSERT, UPDATE, DELETE ON .*public\.pets, .*; GRANT INSERT ON public\.audit_events TO/,
    ],
    [
      'on all tables',
      () => 'SELECT 1',
      /lacks rights on account_links, .*store_migrations/,
      /GRANT SELECT ON public\.store_mig/,
    ],
    [
      'on the sequence of ids',
      (role) => `${all(role)}; REVOKE ALL ON SEQUENCE pets_id_seq FROM ${role}`,
      /lacks rights on pets_id_seq$/,
      /GRANT USAGE ON SEQUENCE public\.pets_id_seq TO/,
    ],
    [
      'on the schema',
      (role) => `${all(role)}; REVOKE ALL ON SCHEMA public FROM PUBLIC`,
      /lacks rights on the schema public$/,
      /GRANT USAGE ON SCHEMA public TO "shop-/,
    ],
  ]
  for (const [what, rights, found, grants] of cases) {
    it(`${what} is found by doctor, which names what to grant; that suffices`, () =>
      withRole(async ({ url, role, run }) => {
        await run(rights(role))
        const { code, problem } = await examine(url)
        assert.deepEqual([code, problem?.name], [1, 'Rights'])
        assert.match(problem!.found, found)
        assert.match(problem!.fix!, grants)
        await follow(run, problem!.fix)
        assert.deepEqual(await examine(url), { code: 0, problem: undefined })
      }, shared))
  }

  it('is told by serve in its log, with what to grant, and serves as soon as that is done', () =>
    withRole(async ({ url, role, run }) => {
      await using folder = await Folder.create()
      await run(`${all(role)}; REVOKE ALL ON categories, store_migrations FROM ${role}`)
      const served = await serve(folder, { env: { DATABASE_URL: url } })
      const ready = async () => (await fetch(`${served.url}/readyz`)).status
      assert.equal(await ready(), 503)
      const line = served.lines.find(({ msg }) => String(msg).startsWith('waiting for the database'))
      assert.equal(line?.['level'], 'error')
      const reason = String(line?.['reason'])
      assert.match(reason, /lacks rights on categories, store_migrations\. Run as \w+: GRANT /)
      await follow(run, reason)
      await until(async () => (await ready()) === 200, 'it is ready')
      served.child.kill('SIGTERM')
      const { code, stderr } = await served.ended
      assert.deepEqual([code, stderr], [0, ''])
    }))

  it('fails a command in one line, and no command that needs less', () =>
    withRole(async ({ url, role, run }) => {
      const command = (words: string) => petstore([...words.split(' '), '--database', url], { input: PASSWORD })
      const create = 'account create you@example.com --password-stdin'
      const denied =
        /\npetstore: PostgreSQL: permission denied for \w+ \w+ \(the command doctor names what to grant\)\n$/
      for (const words of [create, 'account list']) assert.match((await command(words)).stderr, denied)
      await run(`GRANT SELECT ON ALL TABLES IN SCHEMA public TO ${role}`)
      assert.match((await command(create)).stderr, denied)
      assert.equal((await command('account list')).code, 0)
    }))

  it('to migrate is found by doctor, and fails the start in one line', () =>
    withRole(async ({ url, role, run }) => {
      await run(all(role))
      const newest = MIGRATIONS.length
      await using newer = await changedProgram(newest, `-- compatible from ${newest}\nCREATE TABLE toys (id INTEGER);`)
      const { stdout } = await newer.run(['doctor', '--json'], { env: { DATABASE_URL: url } })
      const owned = (JSON.parse(stdout) as { checks: Check[] }).checks.find(({ state }) => state === 'problem')
      assert.equal(owned?.name, 'Schema')
      assert.match(owned.found, /^lacks .*, and the role "shop-.*" does not own its tables$/)
      assert.match(owned.fix!, /^Migrate as \w+, which does\.$/)
      await run(`DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT USAGE ON SCHEMA public TO ${role}`)
      const empty = await examine(url)
      assert.match(empty.problem?.found ?? '', /, and the role "shop-.*" may not create tables$/)
      assert.match(empty.problem!.fix!, /^GRANT USAGE, CREATE ON SCHEMA public TO "shop-/)
      const { code, stderr } = await petstore(['serve'], { env: { DATABASE_URL: url, PORT: '0' } })
      assert.equal(code, 1)
      assert.match(stderr, /^petstore: .*migration 0001-first failed.*permission denied for schema public.*\n$/)
    }))

  it('to write, because the role is read-only, is found by doctor', () =>
    withRole(async ({ url, role, run }) => {
      await run(`${all(role)}; ALTER ROLE ${role} SET default_transaction_read_only = on`)
      const { code, problem } = await examine(url)
      assert.deepEqual([code, problem?.name], [1, 'Role'])
      assert.match(problem!.fix!, /RESET default_transaction_read_only/)
    }))
})

describe('A role with no rights but those that doctor names', () => {
  it('starts beside records whose ids it does not assign itself, and is not told that their sequences are behind', () =>
    withRole(async ({ url, role, run }) => {
      await run(`INSERT INTO audit_events (at, account_id, action, via, subject) VALUES (1, 'a', 'x', 'y', 'z')`)
      await follow(run, (await examine(url)).problem?.fix)
      assert.deepEqual(await examine(url), { code: 0, problem: undefined })
      const store = await openStoreToServe(url)
      await store.ping()
      for (const [right, on, name] of [
        ['USAGE', 'SEQUENCE pets_id_seq', 'pets_id_seq'],
        ['INSERT', 'pets', 'pets'],
        ['SELECT', 'api_keys', 'api_keys'],
      ] as const) {
        await run(`REVOKE ${right} ON ${on} FROM ${role}`)
        await assert.rejects(store.ping(), ({ message }: Error) => {
          assert.match(message, new RegExp(`lacks rights on ${name}\\. Run as \\w+: GRANT ${right} ON `))
          return true
        })
        await run(`GRANT ${right} ON ${on} TO ${role}`)
      }
      await store.ping()
      await run('ALTER TABLE pets ENABLE ROW LEVEL SECURITY')
      const { problem } = await examine(url)
      assert.deepEqual(
        [problem?.found, problem?.fix],
        ['table pets has row security, which hides its rows', 'ALTER TABLE pets DISABLE ROW LEVEL SECURITY;'],
      )
      await store.close()
    }))

  it('serves everything: lists, creates, accounts, keys, search, renames, removals, and the chores', () =>
    withRole(async ({ url, role, run }) => {
      await follow(run, (await examine(url)).problem?.fix)
      await using service = await startPetstore({ database: url, env: { PETSTORE_SIGNUP: 'open' } })
      assert.equal((await service.add({ name: 'Rex', categoryId: 1 }, { 'Idempotency-Key': 'a' })).status, 201)
      assert.equal((await service.add({ name: '' })).status, 400)
      assert.equal((await service.call('/pets?status=available')).status, 200)
      assert.equal((await service.call('/pets/1')).status, 200)
      const { pets, accounts } = service.store
      const changed = event(service.account.id, 'pet.changed')
      const was = { name: 'Rex', categoryId: 1n, status: 'available' as const }
      const renamed = await pets.update(1n, was, { ...was, name: 'Max', status: 'sold' }, changed)
      assert.equal(renamed.outcome, 'updated')
      assert.equal((await pets.search({ words: ['max'], limit: 5 })).pets.length, 1)
      const sold = { ...was, name: 'Max', status: 'sold' as const }
      assert.equal((await pets.remove(1n, sold, changed)).outcome, 'removed')
      await pets.purgeIdempotencyRecords(Date.now() + 1000)
      const client = new ConsoleClient(service.url)
      const fields = await client.hiddenFields('/sign-up', '/sign-up')
      const signedUp = await client.post('/sign-up', {
        ...fields,
        name: 'Me',
        email: 'me@example.com',
        password: PASSWORD,
      })
      assert.equal(signedUp.status, 303, signedUp.body)
      await accounts.purgeSessions(Date.now(), 0, Date.now())
      await accounts.purgeUsage(Date.now())
      await service.accounts.revokeKey(service.apiKey, 'console')
      await service.accounts.remove(service.account, 'console')
      await petstore(['seed', '--count', '2', '--database', url])
      assert.deepEqual(
        service.logged.filter(({ level }) => level === 'error'),
        [],
        role,
      )
    }))
})

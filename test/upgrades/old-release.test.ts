// Upgrades from each earlier release: its database is upgraded without loss, and its program works on today's schema.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ENGINES } from '../../assurance/harness/engines.ts'
import type { Role } from '../../src/store/account-store.ts'
import { KINDS } from '../../src/store/records.ts'
import { Folder, serve } from '../harness/command.ts'
import { ConsoleClient } from '../harness/console-client.ts'
import { MIGRATIONS, readRows, readSchema } from '../harness/database-schema.ts'
import { expectError, startPetstore } from '../harness/harness.ts'
import { petstore as command } from '../harness/in-process-command.ts'
import { FIRST_RELEASE, OLD_RELEASES, oldReleaseFolder, restoreOldDatabase } from '../harness/old-release.ts'

interface Stored {
  id: number
  name: string
}

/** Uses the operations of a running service; resolves with the id of the animal that it has added. */
async function useOperations(url: string, key: string): Promise<number> {
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', 'Idempotency-Key': url }
  const create = async () => {
    const body = '{"name":"Rex","categoryId":9223372036854775807,"status":"sold"}'
    const response = await fetch(`${url}/v1/pets`, { method: 'POST', headers, body })
    assert.equal(response.status, 201, 'create')
    return { replayed: response.headers.has('idempotent-replayed'), text: await response.text() }
  }
  const { replayed, text } = await create()
  assert.deepEqual([replayed, await create()], [false, { replayed: true, text }])
  const { id } = JSON.parse(text) as Stored
  assert.equal(await (await fetch(`${url}/v1/pets/${id}`, { headers })).text(), text, 'get')
  const sold = await (await fetch(`${url}/v1/pets?status=sold&limit=1`, { headers })).text()
  assert.equal(sold, `[${text}]`, 'list')
  return id
}

/** Uses the commands that read and write; `url` is a service that runs on the same database. */
async function useCommands(folder: Folder, url: string, env: Record<string, string>): Promise<void> {
  const run = async (words: string[], input = '') => {
    const { code, stdout, stderr } = await folder.run(words, { env, input })
    assert.equal(code, 0, `${words.join(' ')}: ${stderr}`)
    return stdout
  }
  await run(['account', 'create', 'later@example.com', '--password-stdin'], 'correct horse battery')
  const words = ['key', 'create', '--account', 'later@example.com', '--name', 'later', '--json']
  const { id, key } = JSON.parse(await run(words)) as { id: string; key: string }
  const status = async () => (await fetch(`${url}/v1/pets`, { headers: { Authorization: `Bearer ${key}` } })).status
  assert.equal(await status(), 200)
  await run(['import', '-', '--format', 'csv'], 'name,categoryId,status\nImported,3,pending\n')
  const [keys, pets] = await Promise.all(
    [['key', 'list'], ['export', '-', '--format', 'jsonl'], ['doctor']].map((each) => run(each)),
  )
  assert.match(keys!, /laptop 💻/)
  assert.match(pets!, /"Imported"/)
  await run(['key', 'revoke', id])
  await run(['account', 'remove', 'later@example.com', '--yes'])
}

// Its time goes into programs that start one after the other, and it is the last file that a run begins.
describe('A database of an earlier release', { concurrency: true }, () => {
  for (const release of OLD_RELEASES) {
    for (const engine of ENGINES) {
      const later = MIGRATIONS.slice(release.schema)
      const isCompatible = later.every(({ compatibleFrom }) => compatibleFrom <= release.schema)
      describe(`version ${release.version} on ${engine.name}`, { concurrency: false }, () => {
        it('has stored something in every table, and an upgrade loses nothing of it', async () => {
          await using database = await engine.newEmptyDatabase()
          await restoreOldDatabase(engine, database.url, release)
          const schema = await readSchema(database.url)
          const before = await readRows(database.url, schema)
          const kept = KINDS.filter(({ name }) => name in before)
          for (const { name } of kept) assert.ok(before[name]!.length > 0, `${name} is empty`)
          const { code, stdout, stderr } = await command(['migrate', '--json', '--database', database.url])
          assert.equal(code, 0, stderr)
          const { created, migrations } = JSON.parse(stdout) as { created: boolean; migrations: string[] }
          assert.deepEqual([created, migrations], [false, later.map(({ name }) => name)], 'it says what it has done')
          const { petstore_migrations: applied, ...after } = await readRows(database.url, schema)
          const { petstore_migrations: known, ...expected } = before
          assert.deepEqual(after, expected)
          assert.deepEqual(applied!.slice(0, release.schema), known)
          assert.equal(applied!.length, MIGRATIONS.length)
        })

        it('has left animals, keys, sessions, passwords, idempotency records and imports that work after an upgrade', async () => {
          await using database = await engine.newEmptyDatabase()
          const made = await restoreOldDatabase(engine, database.url, release)
          const env = { PETSTORE_ENVIRONMENT: 'staging' }
          await using petstore = await startPetstore({ database: database.url, env, clock: () => made.at + 60_000 })
          const headers = { Authorization: `Bearer ${made.key}`, 'Content-Type': 'application/json' }
          const list = async () => (await (await petstore.call('/pets?limit=100', { headers })).json()) as Stored[]
          const listed = await list()
          const pets = JSON.parse(made.pets) as Stored[]
          assert.equal(listed.length, pets.length)
          assert.partialDeepStrictEqual(listed, pets)

          const repeated = { ...headers, 'Idempotency-Key': made.idempotencyKey }
          const replay = await petstore.add(made.created, repeated)
          assert.deepEqual([replay.status, replay.headers.get('idempotent-replayed')], [201, 'true'])
          assert.partialDeepStrictEqual(await replay.json(), made.created)
          await expectError(await petstore.add({ ...made.created, name: 'Other' }, repeated), 'idempotency_key_reused')
          assert.deepEqual(await list(), listed)

          const visitor = new ConsoleClient(petstore.url)
          visitor.cookies.set('petstore', made.session)
          assert.match((await visitor.get('/keys')).body, /laptop 💻/)
          assert.match((await visitor.get('/activity')).body, /pet_not_found/)
          assert.match((await visitor.get('/account')).body, /Old\.Friend@example\.com/)
          const signedIn = await new ConsoleClient(petstore.url).signIn(made.email, made.password)
          assert.deepEqual([signedIn.status, signedIn.location], [303, '/animals'])

          const words = ['import', '-', '--format', 'csv', '--database', database.url]
          assert.match((await command(words, { input: made.imported })).stderr, /This file was imported already/)
          assert.deepEqual(await list(), listed)
        })

        it('has left keys and animals that commands find before the service has upgraded the database', async () => {
          await using database = await engine.newEmptyDatabase()
          const made = await restoreOldDatabase(engine, database.url, release)
          const run = async (...words: string[]) => {
            const { code, stdout, stderr } = await command([...words, '--database', database.url])
            assert.equal(code, 0, stderr)
            return stdout
          }
          assert.match(await run('key', 'list'), /laptop 💻/)
          assert.match(await run('account', 'list'), new RegExp(made.email, 'i'))
        })

        // Later releases refuse such a key themselves.
        if (release === FIRST_RELEASE) {
          it('works beside this release: a key that it makes for an account without that right is refused, a password that it changes voids links', async () => {
            await using old = await oldReleaseFolder(release)
            await using database = await engine.newEmptyDatabase()
            const { email } = await restoreOldDatabase(engine, database.url, release)
            const env = { DATABASE_URL: database.url, PETSTORE_ENVIRONMENT: 'staging' }
            await using petstore = await startPetstore({
              database: database.url,
              env: { PETSTORE_ENVIRONMENT: 'staging' },
            })
            const { accounts, account: manager, store } = petstore
            await accounts.setRole(manager, 'manager', 'console')
            const person = (await store.accounts.accountByEmail(email))!
            const setRole = async (...[from, to]: [Role, Role]) =>
              assert.equal(await accounts.setRole({ ...person, role: from }, to, 'console'), undefined)
            const run = async (words: string[], input = '') => {
              const { code, stdout, stderr } = await old.run(words, { env, input })
              assert.equal(code, 0, stderr)
              return stdout.trim()
            }
            await setRole(person.role, 'keyless')
            const key = await run(['key', 'create', '--account', email, '--name', 'beside'])
            const list = () => petstore.call('/pets', { headers: { Authorization: `Bearer ${key}` } })
            assert.match(await expectError(await list(), 'revoked_api_key'), /its account has no right to keys/)
            // For good, as the keys that the account had.
            await setRole('keyless', 'member')
            await expectError(await list(), 'revoked_api_key')

            const boss = (await store.accounts.accountById(manager.id))!
            const [link, invitation] = [await accounts.makeLink(boss, person), await accounts.makeLink(boss)]
            assert.ok(await accounts.findLink(link!))
            await run(['account', 'password', email, '--password-stdin'], 'another long password')
            assert.equal(await accounts.findLink(link!), undefined)
            assert.ok(await accounts.findLink(invitation!))
          })
        }

        // Only today's schema: an upgrade applies all pending migrations, so that no release leaves one in between.
        it(`${isCompatible ? 'works with' : 'refuses'} today's schema, as the migrations say`, async () => {
          await using old = await oldReleaseFolder(release)
          await using newer = await Folder.create()
          await using database = await engine.newEmptyDatabase()
          const { key } = await restoreOldDatabase(engine, database.url, release)
          const env = { DATABASE_URL: database.url, PETSTORE_ENVIRONMENT: 'staging' }
          const { url: before } = await serve(old, { env })
          assert.equal((await newer.runInProcess(['migrate'], { env })).code, 0)
          if (!isCompatible) {
            const { code, stderr } = await old.run(['serve', '--port', '0'], { env })
            assert.equal(code, 1)
            assert.match(
              stderr,
              new RegExp(`has schema version ${MIGRATIONS.length}, this program knows only up to ${release.schema}\\.`),
            )
            return
          }
          const { url: after } = await serve(old, { env })
          const added = [await useOperations(before, key), await useOperations(after, key)]
          await useCommands(old, after, env)
          // What the old program has written meanwhile is complete for the new one.
          const { url } = await serve(newer, { env })
          added.push(await useOperations(url, key))
          const list = await fetch(`${url}/v1/pets?limit=100`, { headers: { Authorization: `Bearer ${key}` } })
          const ids = new Set(((await list.json()) as Stored[]).map(({ id }) => id))
          for (const id of added) assert.ok(ids.has(id), `animal ${id} is listed`)
          assert.equal((await newer.runInProcess(['doctor'], { env })).code, 0)
        })
      })
    }
  }
})

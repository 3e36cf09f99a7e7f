// Upgrades from each earlier release: its database is upgraded without loss, its program works on today's schema, and both work side by
// side while they restart.
import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { ENGINES, type TestEngine } from '../harness/databases/engines.ts'
import { KINDS } from '../../src/store/records.ts'
import { Folder, serve } from '../harness/programs/command.ts'
import { ConsoleClient } from '../harness/connections/console-client.ts'
import { MIGRATIONS, readRows, readSchema } from '../harness/databases/database-schema.ts'
import { expectError, startPetstore } from '../harness/harness.ts'
import { petstore as command } from '../harness/programs/in-process-command.ts'
import {
  type Made,
  type OldRelease,
  oldReleaseFolder,
  RELEASES,
  restoreOldDatabase,
} from '../harness/programs/old-release.ts'

/** The SHA-256 of each kept file. They are never made again: a program that is packed later proves nothing about the one in use. */
const KEPT: Record<string, string> = {
  '1.0.0/made.json': 'b0f13ed199d712e1aa2a0554cf4e4ea2ef4415a91d7396a853e66655bd608025',
  '1.0.0/package.tar.gz': '996e1a8283e26a9b7b976dd1591702134e3f46d25424d00a1a3e1870ae604de9',
  '1.0.0/petstore.db.gz': 'ad9c8b4f6448c150941ff67db41b6b5ff9082267444985b22c0e311e5bb49a90',
  '1.0.0/postgres.sql': '5d2029de747b9e8ae36d14bdd1d46637de99832384c284a4db1071510724b0aa',
}

interface Stored {
  id: number
  name: string
}

/** An animal of its own, which two programs are asked to add again and again until one of them has. */
interface Wanted {
  name: string
  id?: number
}

const authorized = (key: string) => ({ Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' })

/** Adds animals, each with an Idempotency-Key, at whichever address answers; stops at the signal. */
async function addUntil(
  stopped: AbortSignal,
  addresses: readonly string[],
  key: string,
  adder: number,
): Promise<Wanted[]> {
  const wanted: Wanted[] = []
  while (!stopped.aborted) {
    const animal: Wanted = { name: `Rex ${adder}.${wanted.length}` }
    wanted.push(animal)
    const headers = { ...authorized(key), 'Idempotency-Key': animal.name }
    for (let nth = 0; animal.id === undefined; nth += 1) {
      const address = addresses[nth % addresses.length]!
      const body = JSON.stringify({ name: animal.name, categoryId: 7 })
      const answer = await fetch(`${address}/v1/pets`, { method: 'POST', headers, body }).catch(() => undefined)
      if (answer?.status === 201) animal.id = ((await answer.json()) as Stored).id
      else await setTimeout(20)
    }
  }
  return wanted
}

/** Uses the commands that read and write. */
async function useCommands(folder: Folder, env: Record<string, string>): Promise<void> {
  const run = async (words: string[], input = '') => {
    const { code, stdout, stderr } = await folder.run(words, { env, input })
    assert.equal(code, 0, `${words.join(' ')}: ${stderr}`)
    return stdout
  }
  await run(['import', '-', '--format', 'csv'], 'name,categoryId,status\nImported,3,pending\n')
  const [keys, pets] = await Promise.all(
    [['key', 'list'], ['export', '-', '--format', 'jsonl'], ['doctor']].map((each) => run(each)),
  )
  assert.match(keys!, /laptop 💻/)
  assert.match(pets!, /"Imported"/)
}

async function restored(engine: TestEngine, release: OldRelease) {
  const database = await engine.newEmptyDatabase()
  const made = await restoreOldDatabase(engine, database.url, release)
  return { made, url: database.url, [Symbol.asyncDispose]: () => database[Symbol.asyncDispose]() }
}

it('The kept releases are those that were published', () => {
  for (const [file, expected] of Object.entries(KEPT))
    assert.equal(hash('sha256', readFileSync(new URL(`fixtures/${file}`, import.meta.url))), expected, file)
})

// Its time goes into programs that start one after the other, and it is the last file that a run begins.
describe('A database of an earlier release', { concurrency: true }, () => {
  for (const release of RELEASES)
    for (const engine of ENGINES)
      describe(`version ${release.version} on ${engine.name}`, { concurrency: false }, () => {
        const later = MIGRATIONS.slice(release.schema)

        it('has stored something in every table, and an upgrade loses nothing of it', async () => {
          await using old = await restored(engine, release)
          const schema = await readSchema(old.url)
          const before = await readRows(old.url, schema)
          for (const { name } of KINDS.filter((kind) => kind.name in before))
            assert.ok(before[name]!.length > 0, `${name} is empty`)
          const { code, stdout, stderr } = await command(['migrate', '--json', '--database', old.url])
          assert.equal(code, 0, stderr)
          const { created, migrations } = JSON.parse(stdout) as { created: boolean; migrations: string[] }
          assert.deepEqual([created, migrations], [false, later.map(({ name }) => name)], 'it says what it has done')
          const { store_migrations: applied, ...after } = await readRows(old.url, schema)
          const { store_migrations: known, ...expected } = before
          assert.deepEqual(after, expected)
          assert.deepEqual(applied!.slice(0, release.schema), known)
          assert.equal(applied!.length, MIGRATIONS.length)
        })

        it('has left animals, keys, sessions, passwords, idempotency records and imports that work after an upgrade', async () => {
          await using old = await restored(engine, release)
          await useAll(old.url, old.made)
        })

        // Only today's schema: an upgrade applies all pending migrations, so that no release leaves one in between.
        it("works beside today's program under load, while both restart; then alone again, and nothing is lost or doubled", async () => {
          await using old = await restored(engine, release)
          await using older = await oldReleaseFolder(release)
          await using newer = await Folder.create()
          const { key } = old.made
          const env = { DATABASE_URL: old.url, PETSTORE_ENVIRONMENT: 'staging' }
          const programs = [await serve(older, { env })]
          assert.equal((await newer.runInProcess(['migrate'], { env })).code, 0)
          programs.push(await serve(newer, { env }))
          const addresses = programs.map(({ url }) => url)
          const stop = new AbortController()
          const adding = Promise.all(Array.from({ length: 4 }, (_, nth) => addUntil(stop.signal, addresses, key, nth)))
          for (const [nth, folder] of [older, newer, older].entries()) {
            const which = folder === older ? 0 : 1
            const { child, ended } = programs[which]!
            child.kill('SIGTERM')
            assert.equal((await ended).code, 0, `restart ${nth}`)
            programs[which] = await serve(folder, { env })
            addresses[which] = programs[which].url
          }
          await useCommands(older, env)
          stop.abort()
          const added = (await adding).flat()
          assert.ok(added.length > 20, `${added.length} were added`)
          programs[1]!.child.kill('SIGTERM')
          await programs[1]!.ended
          const { stdout } = await older.run(['export', '-', '--format', 'jsonl'], { env })
          const stored = stdout
            .trim()
            .split('\n')
            .map((line) => JSON.parse(line) as Stored)
          for (const { name, id } of added)
            assert.deepEqual(
              stored.filter((each) => each.name === name).map((each) => each.id),
              [id],
              name,
            )
          assert.equal((await newer.runInProcess(['doctor'], { env })).code, 0)
        })
      })
})

async function useAll(database: string, made: Made): Promise<void> {
  const env = { PETSTORE_ENVIRONMENT: 'staging' }
  await using petstore = await startPetstore({ database, env, clock: () => made.at + 60_000 })
  const headers = authorized(made.key)
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
  assert.match((await visitor.get('/animals/1')).body, /Reserved/)
  const signedIn = await new ConsoleClient(petstore.url).signIn(made.email, made.password)
  assert.deepEqual([signedIn.status, signedIn.location], [303, '/animals'])

  const words = ['import', '-', '--format', 'csv', '--database', database]
  assert.match((await command(words, { input: made.imported })).stderr, /This file was imported already/)
  assert.deepEqual(await list(), listed)
}

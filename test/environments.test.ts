// A database knows its environment: who records it, who is refused, and what becomes of its keys.
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { Accounts } from '../src/accounts/accounts.ts'
import { readConfig } from '../src/config.ts'
import { Problem } from '../src/contract/errors.ts'
import type { Environment } from '../src/contract/operations.ts'
import { openStore } from '../src/store/open-store.ts'
import type { CannotOpenStore } from '../src/store/store.ts'
import { ensureEnvironment } from '../src/store/environment.ts'
import { ENGINES, sqlite } from '../assurance/harness/engines.ts'
import { samplePet } from '../assurance/harness/sample-pet.ts'
import { expectError, PASSWORD, startPetstore } from './harness.ts'
import { petstore } from './in-process-command.ts'
import { withStore } from './with-store.ts'

const EMAIL = 'you@example.com'
/** The commands that create a missing database, apart from copy, which carries the environment over. */
const FIRST_COMMANDS = [
  `account create ${EMAIL} --password-stdin`,
  'migrate',
  'seed --count 1',
  'import - --format csv',
] as const
const INPUTS: Record<string, string> = {
  [FIRST_COMMANDS[0]]: PASSWORD,
  [FIRST_COMMANDS[3]]: 'name,categoryId\nRex,1\n',
}
const PRODUCTION = { PETSTORE_ENVIRONMENT: 'production' }
const STAGING = { PETSTORE_ENVIRONMENT: 'staging' }

/** Makes a key, as an earlier release did, which did not record the environment. */
async function makeUnrecordedKey(url: string, environment: Environment): Promise<void> {
  const store = await openStore(readConfig({ database: url }, {}).database)
  const accounts = new Accounts({ store, environment, clock: Date.now })
  const account = await accounts.create(EMAIL, PASSWORD, 'command line')
  assert.ok(!(account instanceof Problem))
  await accounts.createKey(account, 'x', undefined, 'command line')
  await store.close()
}

async function recorded(url: string): Promise<string | undefined> {
  const store = await openStore(readConfig({ database: url }, {}).database)
  const environment = await store.environment()
  await store.close()
  return environment
}

/** Starts the service and makes a key. Resolves with what was logged. */
async function servedOnce(database: string, env: Record<string, string> = {}): Promise<unknown[]> {
  await using served = await startPetstore({ database, env })
  return served.logged
}

for (const engine of ENGINES) {
  describe(`The environment of a database, on ${engine.name}`, { concurrency: false }, () => {
    for (const first of FIRST_COMMANDS) {
      it(`is recorded and reported by "${first}" when that creates it, from the setting or its default`, async () => {
        for (const [env, environment] of [
          [{}, 'staging'],
          [PRODUCTION, 'production'],
        ] as const) {
          // Refused there.
          if (first.startsWith('seed') && env === PRODUCTION) continue
          await using database = await engine.newDatabase()
          const run = async (words: string, input = '') => {
            const all = [...words.split(' '), '--database', database.url]
            const ended = await petstore(all, { input, env })
            assert.equal(ended.code, 0, ended.stderr)
            return ended
          }
          const { stderr } = await run(first, INPUTS[first])
          assert.match(stderr, new RegExp(`Created the database .* It belongs to ${environment}\\b`))
          assert.equal(await recorded(database.url), environment)
          if (first !== FIRST_COMMANDS[0]) await run(FIRST_COMMANDS[0], PASSWORD)
          const { stdout } = await run(`key create --account ${EMAIL} --name x`)
          assert.match(stdout, env === PRODUCTION ? /^pets_live_/ : /^pets_test_/)
          await servedOnce(database.url, env)
        }
      })
    }

    it('is recorded when the service creates it, from its setting or its default', async () => {
      await using first = await engine.newDatabase()
      await using second = await engine.newDatabase()
      await servedOnce(first.url)
      await servedOnce(second.url, PRODUCTION)
      assert.deepEqual([await recorded(first.url), await recorded(second.url)], ['staging', 'production'])
    })

    it('gives way, if it was a default, to a setting that is given, while there is neither key nor animal', async () => {
      const ways: ((url: string) => Promise<unknown>)[] = [
        (url) => servedOnce(url, PRODUCTION),
        (url) => petstore(['migrate', '--database', url, '--environment', 'production']),
        (url) => petstore(['environment', 'set', 'production', '--database', url]),
      ]
      for (const change of ways) {
        await using database = await engine.newDatabase()
        await petstore(['migrate', '--database', database.url])
        const told = JSON.stringify(await change(database.url))
        assert.match(told, /belongs to production now|now belongs to production/)
        assert.equal(await recorded(database.url), 'production')
        await petstore(['migrate', '--database', database.url, '--environment', 'staging'])
        assert.equal(await recorded(database.url), 'production', 'it was chosen, and stays')
      }
    })

    it('stays a default that is in use: with an animal, a key, or once it was chosen', async () => {
      const uses = [
        'seed --count 1',
        `key create --account ${EMAIL} --name x`,
        'migrate --environment staging',
        'environment set staging',
      ]
      for (const use of uses) {
        await using database = await engine.newDatabase()
        const run = (words: string, input = '') =>
          petstore([...words.split(' '), '--database', database.url], { input })
        await run(`account create ${EMAIL} --password-stdin`, PASSWORD)
        assert.equal((await run(use)).code, 0, use)
        await assert.rejects(
          servedOnce(database.url, PRODUCTION),
          /belongs to staging, but the setting is production\. Set/,
        )
        await run('migrate --environment production')
        assert.equal(await recorded(database.url), 'staging', use)
        await servedOnce(database.url)
      }
    })

    it('that an earlier release left out is recorded at the next start or key; keys that it made stay valid', async () => {
      for (const next of ['start', 'key'] as const) {
        await using database = await engine.newDatabase()
        await makeUnrecordedKey(database.url, 'staging')
        if (next === 'start') await assert.rejects(servedOnce(database.url, PRODUCTION), /belongs to staging/)
        else {
          const words = ['key', 'create', '--account', EMAIL, '--name', 'y', '--database', database.url]
          const failed = await petstore(words.with(3, 'nobody@example.com'), { env: PRODUCTION })
          assert.deepEqual(
            [failed.code, await recorded(database.url)],
            [1, undefined],
            'a failed command changes nothing',
          )
          assert.match((await petstore(words, { env: PRODUCTION })).stdout, /^pets_test_/)
        }
        assert.equal(await recorded(database.url), 'staging')
      }
    })

    it('that is not recorded yet is changed only with --yes while active keys would be refused, and is shown as none', async () => {
      await using database = await engine.newDatabase()
      const run = (words: string) => petstore([...words.split(' '), '--database', database.url])
      const store = await openStore(readConfig({ database: database.url }, {}).database)
      const accounts = new Accounts({ store, environment: 'staging', clock: Date.now })
      const account = await accounts.create(EMAIL, PASSWORD, 'command line')
      assert.ok(!(account instanceof Problem))
      for (const name of ['active', 'revoked']) {
        const made = await accounts.createKey(account, name, undefined, 'command line')
        assert.ok(!(made instanceof Problem))
        if (name === 'revoked') await accounts.revokeKey(made.key, 'command line')
      }
      const longAgo = new Accounts({ store, environment: 'staging', clock: () => 1 })
      assert.ok(!((await longAgo.createKey(account, 'expired', 2, 'command line')) instanceof Problem))
      await store.close()
      const shown = await run('environment show')
      assert.deepEqual([shown.code, shown.stdout], [0, ''])
      assert.match(shown.stderr, /has no environment yet; the next start of the service records one/)
      assert.deepEqual(JSON.parse((await run('environment show --json')).stdout), { environment: null })
      const refused = await run('environment set production')
      assert.equal(refused.code, 2)
      assert.match(refused.stderr, /belongs to no environment and has 1 active key of staging .*; add --yes/)
      assert.deepEqual(JSON.parse((await run('environment set production --yes --json')).stdout), {
        environment: 'production',
        was: null,
        refusedKeys: 1,
      })
      assert.deepEqual(JSON.parse((await run('environment show --json')).stdout), { environment: 'production' })
    })

    it('that was chosen is changed only with --yes, also while there is no key', async () => {
      await using database = await engine.newDatabase()
      const run = (words: string) => petstore([...words.split(' '), '--database', database.url])
      await run('migrate --environment production')
      const refused = await run('environment set staging')
      assert.deepEqual([refused.code, refused.stdout], [2, ''])
      assert.match(refused.stderr, /belongs to production; add --yes to change it to staging\.\n/)
      assert.equal(await recorded(database.url), 'production')
      const changed = await run('environment set staging --yes')
      assert.doesNotMatch(changed.stderr, /Problem/)
      assert.equal(await recorded(database.url), 'staging')
    })

    it('must be that of the start, which is refused otherwise and says how to proceed', async () => {
      await using database = await engine.newDatabase()
      await servedOnce(database.url, PRODUCTION)
      for (const [env, setting] of [
        [STAGING, 'staging'],
        [{}, 'staging, its default'],
      ] as const) {
        await assert.rejects(
          servedOnce(database.url, env),
          ({ name, message, command }: CannotOpenStore) =>
            name === 'CannotOpenStore' &&
            message.includes(
              `belongs to production, but the setting is ${setting}. Set PETSTORE_ENVIRONMENT=production to serve it`,
            ) &&
            message.endsWith('To move it to staging, where its keys are refused:') &&
            command.join(' ') === 'environment set staging',
        )
      }
      assert.equal(await recorded(database.url), 'production')
      await servedOnce(database.url, PRODUCTION)
    })

    it('decides the prefix of a key that a command makes, whatever the setting says', async () => {
      await using database = await engine.newDatabase()
      await servedOnce(database.url, PRODUCTION)
      const run = (words: string, input = '') =>
        petstore([...words.split(' '), '--database', database.url], { input, env: STAGING })
      await run(`account create ${EMAIL} --password-stdin`, PASSWORD)
      assert.match((await run(`key create --account ${EMAIL} --name x`)).stdout, /^pets_live_/)
      const [listed] = JSON.parse((await run(`key list --account ${EMAIL} --json`)).stdout) as { redacted: string }[]
      assert.match(listed!.redacted, /^pets_live_…/)
    })

    it('is changed by a command that says what happens to the keys: refused, kept, and accepted again after a change back', async () => {
      await using database = await engine.newDatabase()
      const run = (words: string) => petstore([...words.split(' '), '--database', database.url])
      let key = ''
      {
        await using service = await startPetstore({ database: database.url })
        key = service.key
      }
      const refused = await run('environment set production')
      assert.equal(refused.code, 2)
      assert.match(
        refused.stderr,
        /belongs to staging and has 1 active key of staging \(pets_test_…\), which production refuses; add --yes to change it/,
      )
      assert.equal((await run('environment show')).stdout, 'staging\n')
      const changed = await run('environment set production --yes')
      assert.equal(changed.code, 0)
      assert.match(
        changed.stderr,
        /belongs to production now\. Restart the service with PETSTORE_ENVIRONMENT=production[^]*Refused from then on: 1 active key of staging/,
      )
      assert.deepEqual(JSON.parse((await run('environment set production --json')).stdout), {
        environment: 'production',
        was: 'production',
        refusedKeys: 0,
      })
      const [{ redacted }] = JSON.parse((await run('key list --json')).stdout) as [{ redacted: string }]
      assert.equal(redacted, `pets_test_…${key.slice(-4)}`, 'a key is shown with its own prefix')
      {
        await using service = await startPetstore({ database: database.url, env: PRODUCTION })
        await expectError(
          await service.call('/pets', { headers: { Authorization: `Bearer ${key}` } }),
          'wrong_environment',
        )
      }
      assert.deepEqual(JSON.parse((await run('environment set staging --yes --json')).stdout), {
        environment: 'staging',
        was: 'production',
        refusedKeys: 1,
      })
      await using service = await startPetstore({ database: database.url })
      assert.equal((await service.call('/pets', { headers: { Authorization: `Bearer ${key}` } })).status, 200)
    })
  })
}

it('A default environment that gives way to a setting is reported in the log, at the level that is the default', async () => {
  await using database = await sqlite.newDatabase()
  await petstore(['migrate', '--database', database.url])
  const logged = await servedOnce(database.url, { ...PRODUCTION, PETSTORE_LOG_LEVEL: 'notice' })
  assert.match(JSON.stringify(logged), /"msg":"the database belongs to production now; staging was its default"/)
})

it('A default environment is marked as one before it is recorded: no other process takes it for a choice meanwhile', async () => {
  await using database = await sqlite.newDatabase()
  await (await openStore(readConfig({ database: database.url }, {}).database)).close()
  using other = new DatabaseSync(database.url.slice('sqlite:'.length))
  // Another process reads both facts at the moment when the environment is written.
  other.exec(`CREATE TABLE seen (fallback TEXT);
    CREATE TRIGGER looks AFTER INSERT ON store_facts WHEN new.name = 'environment'
    BEGIN INSERT INTO seen SELECT (SELECT value FROM store_facts WHERE name = 'default_environment'); END`)
  await servedOnce(database.url)
  assert.deepEqual({ ...other.prepare('SELECT fallback FROM seen').get() }, { fallback: 'staging' })
})

it('An environment that another process records first is kept, and a command that would have recorded it says so', async () => {
  await using database = await sqlite.newDatabase()
  await makeUnrecordedKey(database.url, 'production')
  const { code, stderr } = await petstore(['environment', 'set', 'production', '--database', database.url], {
    // Called when the command has read the environment, and before it records one.
    clock() {
      using other = new DatabaseSync(database.url.slice('sqlite:'.length))
      other.exec("INSERT INTO store_facts VALUES ('environment', 'staging')")
      return Date.now()
    },
  })
  assert.equal(code, 1)
  assert.match(stderr, /Another process has just changed the environment to staging; nothing was changed here\./)
  assert.equal(await recorded(database.url), 'staging')
})

it('A default environment that is chosen counts as chosen, also when the database is in use by then', async () => {
  const store = await openStore(readConfig({ database: 'sqlite::memory:' }, {}).database)
  await ensureEnvironment(store, { environment: 'staging', isChosen: false })
  await store.pets.create(samplePet)
  assert.equal(await store.isDefaultEnvironment(), true)
  assert.equal(await ensureEnvironment(store, { environment: 'staging', isChosen: true }), 'staging')
  assert.equal(await store.isDefaultEnvironment(), false)
  await store.close()
})

it('A default environment that was changed and changed back counts as chosen', async () => {
  const store = await openStore(readConfig({ database: 'sqlite::memory:' }, {}).database)
  await ensureEnvironment(store, { environment: 'staging', isChosen: false })
  await store.recordEnvironment('production', { instead: 'staging' })
  await store.recordEnvironment('staging', { instead: 'production' })
  assert.equal(await store.isDefaultEnvironment(), false)
  assert.equal(await ensureEnvironment(store, { environment: 'production', isChosen: true }), 'staging')
  await store.close()
})

it('An environment that is known by a key counts as chosen, also where the setting is not given', async () => {
  await using database = await sqlite.newDatabase()
  await makeUnrecordedKey(database.url, 'production')
  const { code, stderr } = await petstore(['migrate', '--database', database.url])
  assert.equal(code, 0)
  assert.match(stderr, / now belongs to production\.\n/)
  assert.equal(await withStore(database.url, (store) => store.isDefaultEnvironment()), false)
})

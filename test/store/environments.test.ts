// A database knows its environment: who records it, who is refused, and what becomes of its keys.
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { Accounts } from '../../src/accounts/accounts.ts'
import { Problem } from '../../src/contract/errors.ts'
import type { Environment } from '../../src/contract/environments.ts'
import type { Account } from '../../src/store/account-store.ts'
import type { CannotOpenStore, Store } from '../../src/store/store.ts'
import { ensureEnvironment } from '../../src/store/database/environment.ts'
import { ENGINES, sqlite } from '../harness/databases/engines.ts'
import { samplePet } from '../harness/databases/sample-pet.ts'
import { expectError, PASSWORD, startPetstore } from '../harness/harness.ts'
import { commandsOn } from '../harness/programs/in-process-command.ts'
import { withStore } from '../harness/databases/with-store.ts'

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
const CREATE_KEY = `key create --account ${EMAIL} --name x`
const PRODUCTION = { PETSTORE_ENVIRONMENT: 'production' }
const STAGING = { PETSTORE_ENVIRONMENT: 'staging' }

/** Makes a key before the environment is recorded; then does more. */
function makeUnrecordedKey(
  url: string,
  environment: Environment,
  more: (store: Store, accounts: Accounts, account: Account) => Promise<unknown> = async () => {},
): Promise<void> {
  return withStore(url, async (store) => {
    const accounts = new Accounts({ store, environment, clock: Date.now })
    const account = await accounts.create(EMAIL, PASSWORD, 'command line')
    assert.ok(!(account instanceof Problem))
    await accounts.createKey(account, 'x', undefined, 'command line')
    await more(store, accounts, account)
  })
}

const recorded = (url: string) => withStore(url, (store) => store.environment())

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
          await using database = await engine.newEmptyDatabase()
          const commands = commandsOn(database.url, { env, input: PASSWORD })
          const { stderr } = await commands.call(0, first, { input: INPUTS[first] ?? '' })
          assert.match(stderr, new RegExp(`Created the database .* It belongs to ${environment}\\b`))
          assert.equal(await recorded(database.url), environment)
          if (first !== FIRST_COMMANDS[0]) await commands.call(0, FIRST_COMMANDS[0])
          const { stdout } = await commands.call(0, CREATE_KEY)
          assert.match(stdout, env === PRODUCTION ? /^pets_live_/ : /^pets_test_/)
          await servedOnce(database.url, env)
        }
      })
    }

    it('is recorded when the service creates it, from its setting or its default', async () => {
      await using first = await engine.newEmptyDatabase()
      await using second = await engine.newEmptyDatabase()
      await servedOnce(first.url)
      await servedOnce(second.url, PRODUCTION)
      assert.deepEqual([await recorded(first.url), await recorded(second.url)], ['staging', 'production'])
    })

    it('gives way, if it was a default, to a setting that is given, while there is neither key nor animal', async () => {
      const ways: ((url: string) => Promise<unknown>)[] = [
        (url) => servedOnce(url, PRODUCTION),
        (url) => commandsOn(url).run('migrate --environment production'),
        (url) => commandsOn(url).run('environment set production'),
      ]
      for (const change of ways) {
        await using database = await engine.newEmptyDatabase()
        await commandsOn(database.url).call(0, 'migrate')
        const told = JSON.stringify(await change(database.url))
        assert.match(told, /belongs to production now|now belongs to production/)
        assert.equal(await recorded(database.url), 'production')
        await commandsOn(database.url).call(0, 'migrate --environment staging')
        assert.equal(await recorded(database.url), 'production', 'it was chosen, and stays')
      }
    })

    it('stays a default that is in use: with an animal, a key, or once it was chosen', async () => {
      for (const use of ['seed --count 1', CREATE_KEY, 'migrate --environment staging', 'environment set staging']) {
        await using database = await engine.newEmptyDatabase()
        const commands = commandsOn(database.url, { input: PASSWORD })
        await commands.call(0, FIRST_COMMANDS[0])
        await commands.call(0, use)
        const refused = /belongs to staging, but the setting is production\. Set/
        await assert.rejects(servedOnce(database.url, PRODUCTION), refused)
        await commands.call(0, 'migrate --environment production')
        assert.equal(await recorded(database.url), 'staging', use)
        await servedOnce(database.url)
      }
    })

    it('that is not recorded yet is changed only with --yes while active keys would be refused, and is shown as none', async () => {
      await using database = await engine.newEmptyDatabase()
      const commands = commandsOn(database.url)
      await makeUnrecordedKey(database.url, 'staging', async (store, accounts, account) => {
        const made = await accounts.createKey(account, 'revoked', undefined, 'command line')
        assert.ok(!(made instanceof Problem))
        await accounts.revokeKey(made.key, 'command line')
        const longAgo = new Accounts({ store, environment: 'staging', clock: () => 1 })
        assert.ok(!((await longAgo.createKey(account, 'expired', 2, 'command line')) instanceof Problem))
      })
      const shown = await commands.call(0, 'environment show')
      assert.equal(shown.stdout, '')
      assert.match(shown.stderr, /has no environment yet; the next start of the service records one/)
      assert.deepEqual(await commands.json('environment show'), { environment: null })
      const why = /belongs to no environment and has 1 active key of staging .*; add --yes/
      await commands.refused(2, 'environment set production', why)
      const changed = { environment: 'production', was: null, refusedKeys: 1 }
      assert.deepEqual(await commands.json('environment set production --yes'), changed)
      assert.deepEqual(await commands.json('environment show'), { environment: 'production' })
    })

    it('that was chosen is changed only with --yes, also while there is no key', async () => {
      await using database = await engine.newEmptyDatabase()
      const commands = commandsOn(database.url)
      await commands.call(0, 'migrate --environment production')
      const why = /belongs to production; add --yes to change it to staging\.\n/
      await commands.refused(2, 'environment set staging', why)
      assert.equal(await recorded(database.url), 'production')
      assert.doesNotMatch((await commands.call(0, 'environment set staging --yes')).stderr, /Refused/)
      assert.equal(await recorded(database.url), 'staging')
    })

    it('must be that of the start, which is refused otherwise and says how to proceed', async () => {
      await using database = await engine.newEmptyDatabase()
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
      await using database = await engine.newEmptyDatabase()
      const commands = commandsOn(database.url, { input: PASSWORD, env: STAGING })
      await commands.call(0, 'migrate --environment production')
      await commands.call(0, FIRST_COMMANDS[0])
      assert.match((await commands.call(0, CREATE_KEY)).stdout, /^pets_live_/)
      const [listed] = await commands.json<{ redacted: string }[]>(`key list --account ${EMAIL}`)
      assert.match(listed!.redacted, /^pets_live_…/)
    })

    it('is changed by a command that says what happens to the keys: refused, kept, and accepted again after a change back', async () => {
      await using database = await engine.newEmptyDatabase()
      const commands = commandsOn(database.url)
      let key = ''
      {
        await using service = await startPetstore({ database: database.url })
        key = service.key
      }
      await commands.refused(
        2,
        'environment set production',
        /belongs to staging and has 1 active key of staging \(pets_test_…\), which production refuses; add --yes to change it/,
      )
      assert.equal((await commands.call(0, 'environment show')).stdout, 'staging\n')
      const changed = await commands.call(0, 'environment set production --yes')
      assert.match(
        changed.stderr,
        /belongs to production now\. Restart the service with PETSTORE_ENVIRONMENT=production[^]*Refused from then on: 1 active key of staging/,
      )
      const same = { environment: 'production', was: 'production', refusedKeys: 0 }
      assert.deepEqual(await commands.json('environment set production'), same)
      const [listed] = await commands.json<{ redacted: string }[]>('key list')
      assert.equal(listed?.redacted, `pets_test_…${key.slice(-4)}`, 'a key is shown with its own prefix')
      const headers = { Authorization: `Bearer ${key}` }
      {
        await using service = await startPetstore({ database: database.url, env: PRODUCTION })
        await expectError(await service.call('/pets', { headers }), 'wrong_environment')
      }
      const back = { environment: 'staging', was: 'production', refusedKeys: 1 }
      assert.deepEqual(await commands.json('environment set staging --yes'), back)
      await using service = await startPetstore({ database: database.url })
      assert.equal((await service.call('/pets', { headers })).status, 200)
    })
  })
}

it('A default environment that gives way to a setting is reported in the log, at the level that is the default', async () => {
  await using database = await sqlite.newEmptyDatabase()
  await commandsOn(database.url).call(0, 'migrate')
  const logged = await servedOnce(database.url, { ...PRODUCTION, PETSTORE_LOG_LEVEL: 'notice' })
  assert.match(JSON.stringify(logged), /"msg":"the database belongs to production now; staging was its default"/)
})

it('A default environment is marked as one before it is recorded: no other process takes it for a choice meanwhile', async () => {
  await using database = await sqlite.newEmptyDatabase()
  await withStore(database.url, async () => {})
  using other = new DatabaseSync(database.url.slice('sqlite:'.length))
  // Another process reads both facts at the moment when the environment is written.
  other.exec(`CREATE TABLE seen (fallback TEXT);
    CREATE TRIGGER looks AFTER INSERT ON store_facts WHEN new.name = 'environment'
    BEGIN INSERT INTO seen SELECT (SELECT value FROM store_facts WHERE name = 'default_environment'); END`)
  await servedOnce(database.url)
  assert.deepEqual({ ...other.prepare('SELECT fallback FROM seen').get() }, { fallback: 'staging' })
})

it('An environment that another process records first is kept, and a command that would have recorded it says so', async () => {
  await using database = await sqlite.newEmptyDatabase()
  await makeUnrecordedKey(database.url, 'production')
  // Called when the command has read the environment, and before it records one.
  const clock = () => {
    using other = new DatabaseSync(database.url.slice('sqlite:'.length))
    other.exec("INSERT INTO store_facts VALUES ('environment', 'staging')")
    return Date.now()
  }
  const why = /Another process has just changed the environment to staging; nothing was changed here\./
  await commandsOn(database.url).refused(1, 'environment set production', why, { clock })
  assert.equal(await recorded(database.url), 'staging')
})

it('A default environment that is chosen, or changed and changed back, counts as chosen, also when the database is in use by then', async () => {
  const settled: [change: (store: Store) => Promise<unknown>, setting: Environment][] = [
    [(store) => store.pets.create(samplePet), 'staging'],
    [
      async (store) => {
        await store.recordEnvironment('production', { instead: 'staging' })
        await store.recordEnvironment('staging', { instead: 'production' })
        assert.equal(await store.isDefaultEnvironment(), false)
      },
      'production',
    ],
  ]
  for (const [change, environment] of settled)
    await withStore('sqlite::memory:', async (store) => {
      await ensureEnvironment(store, { environment: 'staging', isChosen: false })
      assert.equal(await store.isDefaultEnvironment(), true)
      await change(store)
      assert.equal(await ensureEnvironment(store, { environment, isChosen: true }), 'staging')
      assert.equal(await store.isDefaultEnvironment(), false)
    })
})

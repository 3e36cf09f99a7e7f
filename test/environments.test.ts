// A database knows its environment: who records it, who is refused, and what becomes of its keys.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { readConfig } from '../src/config.ts'
import { openStore } from '../src/store/open-store.ts'
import { ENGINES } from '../harness/engines.ts'
import { expectError, PASSWORD, startPetstore } from './harness.ts'
import { petstore } from './in-process-command.ts'

const EMAIL = 'you@example.com'
const PRODUCTION = { PETSTORE_ENVIRONMENT: 'production' }
const STAGING = { PETSTORE_ENVIRONMENT: 'staging' }

async function recorded(url: string): Promise<string | undefined> {
  const store = await openStore(readConfig({ database: url }, {}).database)
  const environment = await store.environment()
  await store.close()
  return environment
}

async function servedOnce(database: string, env: Record<string, string> = {}): Promise<void> {
  await using _served = await startPetstore({ database, env })
}

for (const engine of ENGINES) {
  describe(`The environment of a database, on ${engine.name}`, { concurrency: false }, () => {
    it('is recorded when the service creates it, from its setting or its default', async () => {
      await using first = await engine.newDatabase()
      await using second = await engine.newDatabase()
      await servedOnce(first.url)
      await servedOnce(second.url, PRODUCTION)
      assert.deepEqual([await recorded(first.url), await recorded(second.url)], ['staging', 'production'])
    })

    it('is recorded by a command that creates it only from a setting that was given', async () => {
      await using first = await engine.newDatabase()
      await using second = await engine.newDatabase()
      await petstore(['migrate', '--database', first.url])
      await petstore(['migrate', '--database', second.url, '--environment', 'production'])
      assert.deepEqual([await recorded(first.url), await recorded(second.url)], [undefined, 'production'])
      await petstore(['migrate', '--database', first.url, '--environment', 'production'])
      assert.equal(await recorded(first.url), undefined, 'a command decides only for a database that it creates')
    })

    it('that has none yet is recorded by the first start with a setting, not by a default', async () => {
      await using database = await engine.newDatabase()
      await petstore(['migrate', '--database', database.url])
      await servedOnce(database.url)
      assert.equal(await recorded(database.url), undefined)
      await servedOnce(database.url, PRODUCTION)
      assert.equal(await recorded(database.url), 'production')
    })

    it('must be that of the start, which is refused otherwise and says how to proceed', async () => {
      await using database = await engine.newDatabase()
      await servedOnce(database.url, PRODUCTION)
      for (const env of [STAGING, {}]) {
        await assert.rejects(
          servedOnce(database.url, env),
          ({ name, message }: Error) =>
            name === 'CannotOpenStore' &&
            /belongs to production, but the setting is staging\. Set PETSTORE_ENVIRONMENT=production .*The command "environment set" moves it to staging, where its keys are refused\.$/.test(
              message,
            ),
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

    it('is needed to make a key: without one no prefix is guessed', async () => {
      await using database = await engine.newDatabase()
      const run = (words: string, input = '') => petstore([...words.split(' '), '--database', database.url], { input })
      await run(`account create ${EMAIL} --password-stdin`, PASSWORD)
      const { code, stdout, stderr } = await run(`key create --account ${EMAIL} --name x`)
      assert.deepEqual([code, stdout], [1, ''])
      assert.match(
        stderr,
        /has no environment yet, which decides its keys\. .* petstore environment set production\|staging/,
      )
      assert.match((await run('environment show')).stderr, /has no environment yet/)
      assert.equal((await run('environment set staging')).code, 0)
      assert.match((await run(`key create --account ${EMAIL} --name x`)).stdout, /^pets_test_/)
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

// An account with many keys: how many it may have, and how they are listed.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { hashKey } from '../../src/accounts/api-keys.ts'
import { Problem } from '../../src/contract/errors.ts'
import { kindOf } from '../../src/store/records.ts'
import { ACTIVE_KEYS_MOST } from '../../src/contract/limits.ts'
import type { ApiKey, KeyQuery } from '../../src/store/account-store.ts'
import { type ConsoleClient, signedIn, signedInAs } from '../harness/connections/console-client.ts'
import { ENGINES } from '../harness/databases/engines.ts'
import { describeService, makeAccount, makeKey, type Petstore, startPetstore } from '../harness/harness.ts'
import { petstore as petstoreCommand } from '../harness/programs/in-process-command.ts'
import { apiKey, event } from '../harness/databases/sample-rows.ts'

const NOW = 1_790_000_000_000
const HOUR = 3_600_000
const API_KEYS = kindOf('api_keys')

/** The key of an account with this number, which is newer than those before it. */
const keyOf = (accountId: string, nth: number): ApiKey => ({
  ...apiKey(`key_${accountId}_${String(nth).padStart(3, '0')}`, accountId),
  createdAt: NOW + nth,
})

/** Writes the first keys of an account at once and whatever the limit, by the way of a copy. */
function addMany({ store }: Petstore, accountId: string, howMany: number, revoked = false): Promise<void> {
  const rows = Array.from({ length: howMany }, (_, nth) => {
    const { id, name, environment, lastFour, createdAt } = keyOf(accountId, nth)
    const fixed = { id, account_id: accountId, name, hash: hashKey(id), last_four: lastFour, environment }
    const revokedAt = revoked ? BigInt(NOW) : null
    return { ...fixed, created_at: BigInt(createdAt), expires_at: null, revoked_at: revokedAt, last_used_at: null }
  })
  return store.records.write(API_KEYS, rows)
}

const cardsOf = (body: string) => [...body.matchAll(/<tr id="(\w+)"/g)].map(([, id]) => id!)

describeService('An account with many keys', (service) => {
  const create = (key: ApiKey) =>
    service().store.accounts.createKey({ ...key, hash: hashKey(key.id) }, event(key.accountId, 'key.created'))
  /** The id of another account, which has no key. */
  let accountsMade = 0
  const newAccount = async () => (await makeAccount(service(), `keys-${(accountsMade += 1)}@example.com`)).id
  /** Follows the pages of keys from this one; resolves with the keys on each. */
  const pagesFrom = async (client: ConsoleClient, path: string) => {
    const pages: string[][] = []
    for (let next: string | undefined = path; next !== undefined;) {
      const { body } = await client.get(next)
      pages.push(cardsOf(body))
      next = /rel="next" href="([^"]*)"/.exec(body)?.[1]?.replaceAll('&amp;', '&')
    }
    return pages
  }

  it('has at most 100 active ones, however many are created at once', async () => {
    const id = await newAccount()
    // Few are left to create, so that none waits for a connection longer than a write may.
    const room = 10
    await addMany(service(), id, ACTIVE_KEYS_MOST - room)
    const outcomes = await Promise.all(Array.from({ length: room + 20 }, (_, nth) => create(keyOf(id, 100 + nth))))
    assert.equal(outcomes.filter((outcome) => outcome === 'created').length, room)
    assert.equal(outcomes.filter((outcome) => outcome === 'too many').length, 20)
    const trail = await service().store.accounts.auditTrail(id, 1000)
    assert.equal(trail.filter(({ action }) => action === 'key.created').length, room)
  })

  it('has one key of a form that is sent many times at once', async () => {
    const id = await newAccount()
    const { accounts } = service().store
    const outcomes = await Promise.all(
      Array.from({ length: 8 }, (_, nth) =>
        accounts.createKey({ ...keyOf(id, 0), hash: hashKey(`${id} sent ${nth}`) }, event(id, 'key.created')),
      ),
    )
    assert.deepEqual(outcomes.toSorted(), ['created', ...Array.from({ length: 7 }, () => 'exists')])
    assert.equal((await accounts.listKeys(id)).length, 1)
    const trail = await accounts.auditTrail(id, 100)
    assert.equal(trail.filter(({ action }) => action === 'key.created').length, 1)
  })

  it('can create another once one is revoked or has expired, and a form sent twice is told so even at the limit', async () => {
    const id = await newAccount()
    const { accounts } = service().store
    await addMany(service(), id, ACTIVE_KEYS_MOST - 1)
    assert.equal(await create({ ...keyOf(id, 199), expiresAt: NOW + HOUR }), 'created')
    assert.equal(await create(keyOf(id, 200)), 'too many')
    assert.equal(await create(keyOf(id, 1)), 'exists')
    await accounts.revokeKey(keyOf(id, 1).id, NOW, event(id, 'key.revoked'))
    assert.equal(await create(keyOf(id, 201)), 'created')
    assert.equal(await create(keyOf(id, 202)), 'too many')
    assert.equal(await create({ ...keyOf(id, 203), createdAt: NOW + HOUR }), 'created')
  })

  it('lists the active ones and the others a page at a time, newest first, each once', async () => {
    const id = await newAccount()
    const { accounts } = service().store
    // Two at a time have the same age.
    const made = Array.from({ length: 10 }, (_, nth) => ({
      ...keyOf(id, nth),
      createdAt: NOW - 10 * HOUR + Math.floor(nth / 2) * HOUR,
    }))
    for (const key of made) await create(key)
    await accounts.revokeKey(made[4]!.id, NOW, event(id, 'key.revoked'))
    await create({ ...keyOf(id, 50), createdAt: NOW - 20 * HOUR, expiresAt: NOW })
    const pages = async (active: boolean) => {
      const found: ApiKey[] = []
      for (;;) {
        const query: KeyQuery = { accountId: id, active, now: NOW, limit: 3, after: found.at(-1) }
        const page = await accounts.pageOfKeys(query)
        found.push(...page)
        if (page.length < query.limit) return found.map((key) => key.id)
      }
    }
    const newestFirst = [8, 9, 6, 7, 5, 2, 3, 0, 1].map((nth) => keyOf(id, nth).id)
    assert.deepEqual(await pages(true), newestFirst)
    assert.deepEqual(await pages(false), [keyOf(id, 4).id, keyOf(id, 50).id])
  })

  it('adds up the calls of the keys that are asked for, by operation, and of all of them, by hour', async () => {
    const id = await newAccount()
    const { accounts } = service().store
    for (const nth of [1, 2, 3]) await create(keyOf(id, nth))
    const usage = (nth: number, hour: number, operation: string, status: number, calls: number) => ({
      keyId: keyOf(id, nth).id,
      hour,
      operation,
      status,
      calls,
    })
    const counts = [
      usage(1, HOUR, 'getPet', 200, 1),
      usage(1, 2 * HOUR, 'getPet', 200, 2),
      usage(1, 2 * HOUR, 'getPet', 404, 4),
      usage(1, 2 * HOUR, 'listPets', 200, 8),
      usage(2, 2 * HOUR, 'getPet', 200, 16),
      usage(3, 2 * HOUR, 'getPet', 200, 32),
      usage(1, 3 * HOUR, 'getPet', 200, 64),
      usage(1, 4 * HOUR, 'getPet', 200, 128),
    ]
    await accounts.recordUsage(counts, new Map())
    const since = await accounts.callsSince([keyOf(id, 1).id, keyOf(id, 2).id], 2 * HOUR)
    const sorted = since.map((row) => ({ ...row })).toSorted((one, other) => other.calls - one.calls)
    assert.deepEqual(sorted, [
      { keyId: keyOf(id, 1).id, operation: 'getPet', calls: 198 },
      { keyId: keyOf(id, 2).id, operation: 'getPet', calls: 16 },
      { keyId: keyOf(id, 1).id, operation: 'listPets', calls: 8 },
    ])
    assert.deepEqual(await accounts.callsSince([], 0), [])
    const hourly = (await accounts.usageSince(id, 2 * HOUR)).filter(({ hour }) => hour === 2 * HOUR)
    assert.deepEqual(
      hourly.map(({ operation, status, calls }) => `${operation} ${status}: ${calls}`),
      ['getPet 200: 50', 'getPet 404: 4', 'listPets 200: 8'],
      'of all keys together',
    )
  })

  it('keeps more that it had before, which the console lists a page at a time, and creates no others', async () => {
    const client = await signedInAs(service(), 'excess@example.com')
    const account = (await service().store.accounts.accountByEmail('excess@example.com'))!
    await addMany(service(), account.id, ACTIVE_KEYS_MOST + 45)
    const pages = await pagesFrom(client, '/keys')
    assert.deepEqual(
      pages.map(({ length }) => length),
      [20, 20, 20, 20, 20, 20, 20, 5],
    )
    const all = await service().store.accounts.listKeys(account.id)
    assert.deepEqual(
      pages.flat(),
      all.map(({ id }) => id),
    )
    const refused = await client.submit('/keys/new', '/keys', { name: 'one more', expires: '' })
    assert.equal(refused.status, 400)
    assert.match(refused.body, /has 100 active keys or more\. Revoke one/)
    assert.ok((await service().accounts.createKey(account, 'one more', undefined, 'command line')) instanceof Problem)
  })

  it('finds those no longer in use on pages of their own', async () => {
    const client = await signedInAs(service(), 'inactive@example.com')
    const { id } = (await service().store.accounts.accountByEmail('inactive@example.com'))!
    await addMany(service(), id, 45, true)
    assert.match((await client.get('/keys')).body, /No active key.*href="\/keys\?state=inactive"/s)
    assert.deepEqual(
      (await pagesFrom(client, '/keys?state=inactive')).flat(),
      Array.from({ length: 45 }, (_, nth) => keyOf(id, 44 - nth).id),
    )
    const second = await client.get(`/keys?state=inactive&after=${keyOf(id, 25).id}`)
    assert.match(second.body, /href="\/keys\?state=inactive">← Newest/)
  })

  it('fills a page to the last place without a further one', async () => {
    const client = await signedInAs(service(), 'full-page@example.com')
    const { id } = (await service().store.accounts.accountByEmail('full-page@example.com'))!
    await addMany(service(), id, 20)
    const active = (await client.get('/keys')).body
    assert.equal(cardsOf(active).length, 20)
    assert.doesNotMatch(active, /rel="next"/)
    for (let nth = 0; nth < 20; nth += 1)
      await service().store.accounts.revokeKey(keyOf(id, nth).id, NOW, event(id, 'key.revoked'))
    const inactive = (await client.get('/keys?state=inactive')).body
    assert.equal(cardsOf(inactive).length, 20)
    assert.doesNotMatch(inactive, /rel="next"/)
  })

  it('starts at the newest if the address names the key of somebody else', async () => {
    const client = await signedIn(service())
    const { apiKey: foreign } = await makeKey(service())
    await service().accounts.createKey(service().account, 'newer than that one', undefined, 'console')
    const newest = cardsOf((await client.get('/keys')).body)
    for (const after of [foreign.id, 'key_none', '%00'])
      assert.deepEqual(cardsOf((await client.get(`/keys?after=${after}`)).body), newest, after)
  })
})

describe('petstore key create', () => {
  for (const engine of ENGINES) {
    it(`refuses one more than an account may have, on ${engine.name}`, async () => {
      await using database = await engine.newDatabase()
      await using running = await startPetstore({ database: database.url })
      await addMany(running, running.account.id, ACTIVE_KEYS_MOST - 2)
      const words = ['key', 'create', '--account', running.account.email, '--name', 'one more']
      const options = { env: { DATABASE_URL: database.url } }
      assert.equal((await petstoreCommand(words, options)).code, 0)
      const { code, stdout, stderr } = await petstoreCommand(words, options)
      assert.deepEqual([code, stdout], [1, ''])
      assert.match(
        stderr,
        /^petstore: The account has 100 active keys or more\. Revoke one that is no longer used first\.\n$/,
      )
    })
  }
})

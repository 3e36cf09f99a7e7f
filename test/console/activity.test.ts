// What the console tells about the use of keys as time passes, and about the requests that failed.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { ERRORS } from '../../src/contract/errors.ts'
import { createKey, signedIn, signedInAs, withKey } from '../harness/connections/console-client.ts'
import { describeOnSqlite, makeKey, PASSWORD } from '../harness/harness.ts'

const DAY_MS = 86_400_000
const clock = { now: Date.UTC(2027, 0, 1, 12) }

/** What the chart says to those who hear it. */
const chartIn = (body: string) => /class="bars"[^>]*aria-label="([^"]*)"/.exec(body)?.[1]
const codesIn = (body: string) => [...body.matchAll(/<a href="\/docs\/errors#(\w+)">/g)].map(([, code]) => code)

describeOnSqlite(
  'The use of keys in the console',
  (service) => {
    const open = async (path: string) => (await (await signedIn(service())).get(path)).body
    const pageAfter = async (days: number, path: string) => {
      const start = clock.now
      clock.now += days * DAY_MS
      try {
        return await open(path)
      } finally {
        clock.now = start
      }
    }

    it('is counted over 7 days on the page of keys, as on that of activity, and the last use stays', async () => {
      for (let call = 0; call < 2; call += 1) await service().call('/pets')
      const within = await pageAfter(6.7, '/keys')
      assert.match(within, /data-label="Calls, 7 days">2</)
      const drawn = /<svg [^>]*>\s*<g><title>[^<]*: 2 succeeded<\/title><rect class="success" x="[1-9]/
      assert.match(await pageAfter(6.7, '/activity'), drawn)
      const later = await pageAfter(7.1, '/keys')
      assert.match(later, /data-label="Calls, 7 days">0<\/td>/)
      assert.match(later, /data-label="Last used"><time /)
    })

    it('is shown over 24 hours, 7 days or 30 days, and over 7 days unless one of them is chosen', async () => {
      const words = '2 requests: 2 succeeded, 0 client errors, 0 server errors'
      for (const [span, within, beyond] of [
        ['day', 0.9, 1.1],
        ['week', 6.7, 7.3],
        ['constructor', 6.7, 7.3],
        ['', 6.7, 7.3],
        ['month', 29, 30],
      ] as const) {
        assert.equal(chartIn(await pageAfter(within, `/activity?span=${span}`)), words, span)
        const none = await pageAfter(beyond, `/activity?span=${span}`)
        assert.equal(chartIn(none), undefined, span)
        assert.match(none, /No requests in this time/)
      }
      const body = await open('/activity')
      const countsOf = (operation: string) => {
        const row = body.split('<tr>').find((each) => each.includes(`<code>${operation}</code>`))!
        return [...row.matchAll(/class="number">(\d+)</g)].map(([, count]) => count).join(' ')
      }
      assert.deepEqual([countsOf('listPets'), countsOf('getPet')], ['2 0 0', '0 0 0'], 'each operation with its own')
      const table =
        '<details class="chart-table">.*<caption class="visually-hidden">Requests over time</caption>.*From [(]UTC[)]'
      assert.match(body, new RegExp(`${table}.*<td class="number">[1-9]`, 's'), 'also as a table')
    })

    it('that failed is explained within the chosen time, repeats in one entry', async () => {
      for (let call = 0; call < 21; call += 1) await service().call(`/pets/${900_000 + call}`)
      const shown = await pageAfter(0.9, '/activity?span=day')
      const [, entry = '', ...others] = shown.split('<li><details>')
      assert.deepEqual(others, [])
      assert.match(entry, /<code>pet_not_found<\/code> × 21 <code[^>]*>GET \/v1\/pets\/\{petId\}<.*900020.*900000/s)
      assert.match(await pageAfter(1.1, '/activity?span=day'), /No failed requests/)
      assert.match(await pageAfter(1.1, '/activity?span=week'), /× 21/)
    })

    it('that failed is explained with its Request-Id, code, message and fix', async () => {
      const failed = await service().add({ name: '<script>alert(1)</script>' })
      const [, card = ''] = (await open('/activity')).split('<li><details>')
      assert.ok(card.includes(`Request-Id <code>${failed.headers.get('request-id')}</code>`))
      assert.deepEqual(codesIn(card), ['invalid_pet'])
      assert.match(card, /categoryId is missing/)
      assert.ok(card.includes(ERRORS.invalid_pet.fix))
      assert.doesNotMatch(card, /<script>alert/)
    })

    it('that found no operation is explained too, below the base path or beside it, without the secrets in its address', async () => {
      const client = await signedInAs(service(), 'lost@example.com')
      const { secret } = await client.generateKey('lost')
      const send = (method: string, path: string) => fetch(service().url + path, { method, ...withKey(secret) })
      const long = '/'.padEnd(500, 'x')
      for (const [method, path] of [
        ['DELETE', '/v1/pets/7'],
        ['GET', '/pets'],
        ['GET', `/v1/${secret}?a=b`],
        ['GET', long],
      ] as const)
        await send(method, path)
      const anonymous = await fetch(`${service().url}/v1/nothing`)
      const { body } = await client.get('/activity')
      assert.deepEqual(codesIn(body), ['unknown_path', 'unknown_path', 'unknown_path', 'method_not_allowed'])
      for (const line of [`GET ${long.slice(0, 100)}…`, 'GET /v1/pets_test_…', 'GET /pets', 'DELETE /v1/pets/7'])
        assert.ok(body.includes(`<code class="quiet-text">${line}</code>`), line)
      assert.ok(!body.includes(secret) && !body.includes(anonymous.headers.get('request-id')!))
      assert.match(body, /No requests in this time/, 'they are no calls of an operation')
    })

    it('that failed is explained also by a code that it does not know, such as one of a newer release', async () => {
      const { account, apiKey, store } = service()
      const failed = { at: clock.now, accountId: account.id, keyId: apiKey.id, operation: 'listPets', status: 418 }
      await store.accounts.recordFailures([{ ...failed, requestId: 'r-418', code: 'newer_code', message: 'Brewing.' }])
      const body = await open('/activity')
      const [, entry = ''] = body.split('<li><details>')
      assert.deepEqual(codesIn(entry), [], 'no link to a documentation that it does not have')
      assert.match(entry, /<code>newer_code<\/code>.*<bdi>Brewing\.<\/bdi>.*Request-Id <code>r-418</s)
      assert.doesNotMatch(entry, /Fix:/)
    })

    it('that failed is shown of one key, which is named, or of all keys, never of a key of others', async () => {
      const [{ key, secret }, unused] = [await createKey(service(), 'filtered'), await createKey(service(), 'unused')]
      for (const path of ['/pets?limit=0', '/pets/999999']) await service().call(path, withKey(secret))
      await service().call('/pets?limit=0')
      const { apiKey: foreign } = await makeKey(service())
      const all = codesIn(await open('/activity'))
      assert.deepEqual(all.slice(0, 3), ['invalid_parameter', 'pet_not_found', 'invalid_parameter'])
      for (const [id, name, codes] of [
        [key.id, 'filtered', ['pet_not_found', 'invalid_parameter']],
        [unused.key.id, 'unused', []],
        ['key_none', undefined, all],
        [foreign.id, undefined, all],
      ] as const) {
        const body = await open(`/activity?span=day&key=${id}`)
        const [, shown] = /Only those of <strong><bdi>(\w+)<.*href="\/activity">Show all/.exec(body) ?? []
        assert.deepEqual([shown, codesIn(body)], [name, codes], id)
        assert.equal(/No failed requests/.test(body), codes.length === 0, id)
      }
    })

    it('does not include what is tried with a key after its end, which is only listed among what failed', async () => {
      const client = await signedInAs(service(), 'ended@example.com')
      const { accounts, store } = service()
      const account = (await store.accounts.accountByEmail('ended@example.com'))!
      const [one, other] = [await client.generateKey('to revoke'), await client.generateKey('to expire', '7')]
      const keys = await store.accounts.listKeys(account.id)
      const [revoked, expiring] = ['to revoke', 'to expire'].map((name) => keys.find((key) => key.name === name))
      const lastUse = clock.now
      for (const { secret } of [one, other]) assert.equal((await service().call('/pets', withKey(secret))).status, 200)
      await accounts.revokeKey(revoked!, 'console')
      clock.now = expiring!.expiresAt!
      await client.signIn('ended@example.com', PASSWORD)
      const tried = []
      for (const { secret } of [one, one, other]) tried.push(await service().call('/pets', withKey(secret)))
      const again = (await client.get('/activity?span=month')).body
      assert.deepEqual(codesIn(again), ['expired_api_key', 'revoked_api_key'])
      for (const { headers } of tried) assert.ok(again.includes(headers.get('request-id')!))
      assert.match(again, /revoked_api_key<\/code> × 2 .*<bdi>to revoke<\/bdi>/s)
      assert.match(again, /aria-label="2 requests: 2 succeeded, 0 client errors, 0 server errors"/)
      assert.equal((await store.accounts.keyById(revoked!.id))!.lastUsedAt, lastUse)
      clock.now = lastUse
    })

    it('of a key that expired is told with the key among those no longer in use', async () => {
      const made = await (await signedIn(service())).generateKey('for a week', '7')
      const expiry = `<time datetime="${new Date(clock.now + 7 * DAY_MS).toISOString()}"`
      assert.ok(made.body.includes(`It expires on ${expiry}`), 'said when it is made')
      const [inUse, ended] = [await pageAfter(6.9, '/keys'), await pageAfter(7, '/keys')]
      assert.ok(inUse.includes(`data-label="Expires">${expiry}`), 'and while it is in use')
      assert.doesNotMatch(ended, /for a week/)
      assert.doesNotMatch(await pageAfter(6.9, '/keys?state=inactive'), /for a week/)
      assert.match(await pageAfter(7, '/keys?state=inactive'), /for a week.*<span class="mark off">Expired</s)
    })
  },
  { clock: () => clock.now },
)

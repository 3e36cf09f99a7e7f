// What the console does for the people who use it: names, filters, refused keys, first requests, words that help.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Problem } from '../src/contract/errors.ts'
import { ConsoleClient, hiddenIn, signedIn, signedInAs } from './console-client.ts'
import { describeService, makeKey, PASSWORD, startPetstore } from './harness.ts'

const codesIn = (body: string) => [...body.matchAll(/<a href="\/docs\/errors#(\w+)">/g)].map(([, code]) => code)

describeService('The console, for its people', (service) => {
  it('shows who is signed in, and leads them on from the start page', async () => {
    const client = await signedIn(service())
    assert.ok((await client.get('/animals')).body.includes(`<span class="who"><bdi>${service().account.email}</bdi>`))
    assert.match((await client.get('/')).body, /href="\/keys">Go to your keys</)
    assert.doesNotMatch((await new ConsoleClient(service().url).get('/')).body, /href="\/keys"/)
  })

  it('renames a key, and the security log says from what to what', async () => {
    const { accounts, account, store } = service()
    const made = await accounts.createKey(account, 'old name', undefined, 'console')
    assert.ok(!(made instanceof Problem))
    const page = `/keys/${made.key.id}/rename`
    const client = await signedIn(service())
    const refused = await client.submit(page, page, { name: ' ' })
    assert.equal(refused.status, 400)
    assert.match(refused.body, /<title>Error: Rename a key.*name="name" type="text" value=" "/s)
    const { location } = await client.submit(page, page, { name: 'new name' })
    assert.match((await client.get(location!)).body, /Key renamed.*<bdi>new name<\/bdi>/s)
    const [event] = await store.accounts.auditTrail(account.id, 1)
    assert.deepEqual([event?.action, event?.detail], ['key.renamed', 'Name: old name → new name'])
    assert.equal(
      (await fetch(`${service().url}/v1/pets`, { headers: { Authorization: `Bearer ${made.secret}` } })).status,
      200,
    )
  })

  for (const [method, page, action, fields] of [
    ['createKey', '/keys', '/keys', { name: 'k', expires: '' }],
    ['setPassword', '/account', '/account/password', { current: PASSWORD, password: 'another horse battery' }],
  ] as const) {
    it(`leads to the sign-in where the account was deleted just before ${method}`, async ({ mock }) => {
      const { accounts } = service().store
      const client = await signedInAs(service(), `${method}@example.com`)
      const account = (await accounts.accountByEmail(`${method}@example.com`))!
      const write = accounts[method].bind(accounts) as (...call: unknown[]) => Promise<never>
      mock.method(accounts, method, async (...call: unknown[]) => {
        await service().accounts.remove(account, 'console')
        return write(...call)
      })
      const { status, location } = await client.submit(page, action, fields)
      assert.deepEqual([status, location], [303, `/sign-in?next=${encodeURIComponent(page)}`])
    })
  }

  it('does not take back a rename of another tab: a name that was left alone stays, and another one is asked about', async () => {
    const client = await signedIn(service())
    const path = `/keys/${service().apiKey.id}/rename`
    const form = await client.hiddenFields(path, path)
    await client.submit(path, path, { name: 'theirs' })
    assert.equal((await client.post(path, { ...form, name: form['shown']! })).location, '/keys')
    const nameNow = async () => (await service().store.accounts.keyById(service().apiKey.id))?.name
    assert.equal(await nameNow(), 'theirs')
    const asked = await client.post(path, { ...form, name: 'mine' })
    assert.equal(asked.status, 400)
    assert.match(asked.body, /renamed to theirs while you were editing.*value="mine"/s)
    assert.equal(await nameNow(), 'theirs')
    await client.post(path, { ...hiddenIn(asked.body), name: 'mine' })
    assert.equal(await nameNow(), 'mine')
  })

  it("does not rename somebody else's key", async () => {
    const other = await makeKey(service())
    const client = await signedIn(service())
    assert.equal((await client.get(`/keys/${other.apiKey.id}/rename`)).status, 404)
    const { csrf } = (await client.hiddenFields('/keys', '/keys')) as { csrf: string }
    assert.equal((await client.post(`/keys/${other.apiKey.id}/rename`, { csrf, name: 'mine' })).status, 404)
    assert.equal((await service().store.accounts.keyById(other.apiKey.id))?.name, 'test')
  })

  it('shows the owner of a revoked or expired key the requests that were refused because of it', async () => {
    const { accounts, account, url } = service()
    const made = await accounts.createKey(account, 'revoked one', undefined, 'console')
    assert.ok(!(made instanceof Problem))
    await accounts.revokeKey(made.key, 'console')
    assert.equal((await fetch(`${url}/v1/pets`, { headers: { Authorization: `Bearer ${made.secret}` } })).status, 401)
    const { body } = await (await signedIn(service())).get(`/activity?key=${made.key.id}`)
    assert.deepEqual(codesIn(body), ['revoked_api_key'])
    assert.match(body, /with <bdi>revoked one<\/bdi>/)
  })

  it('shows a failed request with the Request-Id of its answer', async () => {
    const { headers } = await service().call('/pets?limit=none')
    const { body } = await (await signedIn(service())).get('/activity')
    assert.ok(body.includes(`Request-Id <code>${headers.get('request-id')}</code>`))
  })

  it('filters failed requests by key and status', async () => {
    const { accounts, account, url } = service()
    const made = await accounts.createKey(account, 'filtered', undefined, 'console')
    assert.ok(!(made instanceof Problem))
    const headers = { Authorization: `Bearer ${made.secret}` }
    await fetch(`${url}/v1/pets?limit=0`, { headers })
    await fetch(`${url}/v1/pets/999999`, { headers })
    await service().call('/pets?limit=0')
    const client = await signedIn(service())
    assert.deepEqual(codesIn((await client.get(`/activity?key=${made.key.id}`)).body), [
      'pet_not_found',
      'invalid_parameter',
    ])
    const filtered = (await client.get(`/activity?key=${made.key.id}&status=404`)).body
    assert.deepEqual(codesIn(filtered), ['pet_not_found'])
    for (const chosen of [made.key.id, '404'])
      assert.ok(filtered.includes(`<option value="${chosen}" selected>`), chosen)
    assert.match(
      (await client.get(`/activity?key=${made.key.id}&status=500`)).body,
      /No failed request fits the filter/,
    )
  })

  it('shows the filter of failed requests that is in force, also where none fits, and never a key of others', async () => {
    const { accounts, account } = service()
    const made = await accounts.createKey(account, 'never failed', undefined, 'console')
    assert.ok(!(made instanceof Problem))
    await service().call('/pets?limit=0')
    const client = await signedIn(service())
    const chosen = async (query: string) => {
      const { body } = await client.get(`/activity?${query}`)
      const options = [...body.matchAll(/<option value="[^"]*" selected>([^<]*)<\/option>/g)].map(([, words]) => words)
      return [options, codesIn(body).length > 0]
    }
    assert.deepEqual(await chosen(`key=${made.key.id}`), [['never failed', 'All'], false])
    assert.deepEqual(await chosen('status=599'), [['All keys', '599'], false])
    const { apiKey } = await makeKey(service())
    for (const key of ['key_none', apiKey.id]) assert.deepEqual(await chosen(`key=${key}`), [['All keys', 'All'], true])
  })

  it('shows a failed request whose code it does not know, such as one of a newer release', async () => {
    const { account, apiKey, store } = service()
    const failed = { at: Date.now(), accountId: account.id, keyId: apiKey.id, operation: 'listPets', status: 418 }
    await store.accounts.recordFailures([{ ...failed, requestId: 'r-418', code: 'newer_code', message: 'Brewing.' }])
    const { status, body } = await (await signedIn(service())).get('/activity?status=418')
    assert.deepEqual([status, codesIn(body)], [200, []], 'no link to a documentation that it does not have')
    assert.match(body, /<code>newer_code<\/code>.*<bdi>Brewing\.<\/bdi>.*Request-Id <code>r-418</s)
    assert.doesNotMatch(body, /Fix:/)
  })

  it('says how to send a first request, with a key and without one', async () => {
    const { accounts, store } = service()
    const client = await signedInAs(service(), 'first-request@example.com')
    assert.match((await client.get('/activity')).body, /No requests in this time.*href="\/keys">Generate a key</s)
    const account = await store.accounts.accountByEmail('first-request@example.com')
    await accounts.createKey(account!, 'k', undefined, 'console')
    assert.match((await client.get('/activity')).body, /No requests in this time.*with one of your keys/s)
  })

  it('has the numbers of its chart as a table', async () => {
    await service().call('/pets')
    const { body } = await (await signedIn(service())).get('/activity')
    assert.match(
      body,
      /<details class="chart-table">.*<caption class="visually-hidden">Requests over time, UTC<\/caption>.*<td class="number">[1-9]/s,
    )
  })

  it('shows a create first with a new key, and says when its first request has come', async () => {
    const client = await signedIn(service())
    const { body, headers } = await client.submit('/keys', '/keys', { name: 'waits', expires: '' })
    const policy = headers.get('content-security-policy') ?? ''
    assert.match(policy, /^default-src 'none'; .*connect-src 'self'$/, 'its script may ask for the first request')
    assert.ok(body.indexOf('&quot;categoryId&quot;: 3') < body.lastIndexOf('curl '))
    const address = /data-first-request="([^"]+)"/.exec(body)![1]!
    const waiting = await client.get(address)
    assert.equal(waiting.headers.get('refresh'), '3')
    assert.match(waiting.body, /Waiting for the first request/)
    const secret = /value="(pets_test_\w+)"/.exec(body)![1]!
    await fetch(`${service().url}/v1/pets`, { headers: { Authorization: `Bearer ${secret}` } })
    const arrived = await client.get(address)
    assert.equal(arrived.headers.get('refresh'), null)
    assert.match(arrived.body, /1 request with this key so far: it works/)
  })

  it('says how a forgotten password is reset', async () => {
    assert.match(
      (await new ConsoleClient(service().url).get('/sign-in')).body,
      /Forgot your password\? Whoever runs this store can set a new one\./,
    )
  })
})

describe('The console in production', () => {
  it('leads nowhere to sign-up while that is closed, and suggests no made-up animals', async () => {
    await using petstore = await startPetstore({
      env: { PETSTORE_ENVIRONMENT: 'production', PETSTORE_SIGNUP: 'closed' },
    })
    const visitor = new ConsoleClient(petstore.url)
    for (const path of ['/', '/sign-in', '/docs/errors'])
      assert.ok(!(await visitor.get(path)).body.includes('/sign-up'), path)
    const { body } = await (await signedIn(petstore)).get('/animals')
    assert.match(body, /No animals yet/)
    assert.ok(!body.includes('petstore seed'))
  })
})

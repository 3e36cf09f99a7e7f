// What the console tells about the use of keys as time passes.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { Problem } from '../src/contract/errors.ts'
import { ConsoleClient, signedIn } from './console-client.ts'
import { describeService, makeKey, PASSWORD } from './harness.ts'

const DAY_MS = 86_400_000
const clock = { now: Date.UTC(2027, 0, 1, 12) }

describeService(
  'The use of keys in the console',
  (service) => {
    const pageAfter = async (days: number, path: string) => {
      const start = clock.now
      clock.now += days * DAY_MS
      try {
        return (await (await signedIn(service())).get(path)).body
      } finally {
        clock.now = start
      }
    }
    /** What the chart says to those who hear it. */
    const chartAfter = async (days: number, span: string) =>
      /class="bars"[^>]*aria-label="([^"]*)"/.exec(await pageAfter(days, `/activity?span=${span}`))?.[1]

    it('is counted over 7 days on the page of keys, and the last use stays', async () => {
      for (let call = 0; call < 2; call += 1) await service().call('/pets')
      assert.match(await pageAfter(6.9, '/keys'), /Calls, 7 days<\/dt><dd class="number">2</)
      const later = await pageAfter(7.1, '/keys')
      assert.match(later, /Calls, 7 days<\/dt><dd class="number">0</)
      assert.match(later, />7 days ago</)
    })

    it('is shown over 24 hours, 7 days or 30 days, and over 7 days unless one of them is chosen', async () => {
      assert.equal(await chartAfter(0.9, 'day'), '2 requests: 2 succeeded, 0 client errors, 0 server errors')
      assert.equal(await chartAfter(1.1, 'day'), undefined)
      for (const span of ['week', 'constructor', '']) {
        assert.equal(await chartAfter(6.7, span), '2 requests: 2 succeeded, 0 client errors, 0 server errors', span)
        assert.equal(await chartAfter(7.3, span), undefined, span)
      }
      assert.equal(await chartAfter(29, 'month'), '2 requests: 2 succeeded, 0 client errors, 0 server errors')
      assert.equal(await chartAfter(30, 'month'), undefined)
      assert.match(await pageAfter(31, '/activity?span=month'), /No requests in this time/)
      const rows = (await pageAfter(0, '/activity')).split('<tr>')
      const countsOf = (operation: string) =>
        [...rows.find((row) => row.includes(`<code>${operation}</code>`))!.matchAll(/class="number">(\d+)</g)].map(
          ([, count]) => count,
        )
      assert.deepEqual(
        [countsOf('listPets'), countsOf('getPet')],
        [
          ['2', '0', '0'],
          ['0', '0', '0'],
        ],
        'each operation with its own',
      )
    })

    it('that failed is explained within the chosen time, the newest 20 requests of it', async () => {
      for (let call = 0; call < 21; call += 1) await service().call(`/pets/${900_000 + call}`)
      const cards = (page: string) => page.split('class="card failure"').slice(1)
      const shown = await pageAfter(0.9, '/activity?span=day')
      assert.equal(cards(shown).length, 20)
      assert.match(cards(shown)[0]!, /900020/)
      assert.match(shown, /The newest 20 of 21 failed requests\./)
      assert.match(shown, /<input type="hidden" name="span" value="day">/, 'the filter stays within that time')
      assert.match(await pageAfter(1.1, '/activity?span=day'), /No failed requests/)
      assert.equal(cards(await pageAfter(1.1, '/activity?span=week')).length, 20)
    })

    it('does not include what is tried with a key after its revocation, which is only listed among what failed', async () => {
      const { account, apiKey, key } = await makeKey(service())
      const client = new ConsoleClient(service().url)
      await client.signIn(account.email, PASSWORD)
      const call = () => fetch(`${service().url}/v1/pets`, { headers: { Authorization: `Bearer ${key}` } })
      assert.equal((await call()).status, 200)
      await service().accounts.revokeKey(apiKey, 'console')
      clock.now += 60_000
      for (let times = 0; times < 2; times += 1) assert.equal((await call()).status, 401)
      const { body } = await client.get('/activity')
      assert.match(body, /aria-label="1 request: 1 succeeded, 0 client errors, 0 server errors"/)
      assert.match(body, /revoked_api_key/)
      const { lastUsedAt } = (await service().store.accounts.keyById(apiKey.id))!
      assert.equal(lastUsedAt, clock.now - 60_000)
    })

    it('lists requests with an expired key among the failed requests', async () => {
      const { account } = await makeKey(service())
      const client = new ConsoleClient(service().url)
      await client.signIn(account.email, PASSWORD)
      const made = await service().accounts.createKey(account, 'short-lived', clock.now + 1000, 'console')
      assert.ok(!(made instanceof Problem))
      clock.now += 1000
      const tried = await fetch(`${service().url}/v1/pets`, { headers: { Authorization: `Bearer ${made.secret}` } })
      assert.equal(tried.status, 401)
      const { body } = await client.get('/activity')
      assert.match(body, /expired_api_key/)
      assert.ok(body.includes(tried.headers.get('request-id')!))
    })

    it('of a key that expired is told with the key among those no longer in use', async () => {
      const client = await signedIn(service())
      const made = await client.submit('/keys', '/keys', { name: 'for a week', expires: '7' })
      const expiry = `<time datetime="${new Date(clock.now + 7 * DAY_MS).toISOString()}"`
      assert.ok(made.body.includes(`It expires on ${expiry}`), 'said when it is made')
      const [inUse, ended] = [await pageAfter(6.9, '/keys'), await pageAfter(7, '/keys')]
      assert.ok(inUse.includes(`<dt>Expires</dt><dd>${expiry}`), 'and while it is in use')
      assert.doesNotMatch(inUse, /no longer in use/)
      assert.match(ended, /1 key no longer in use.*for a week/s)
    })
  },
  { clock: () => clock.now },
)

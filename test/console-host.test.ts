// Who reaches the console: under which names, and where sign-up is open although nobody has set it.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ConsoleClient, MEMBER_PAGES } from './console-client.ts'
import { expectError, PASSWORD, type Petstore, startPetstore } from './harness.ts'
import { RawConnection } from '../assurance/harness/raw-http.ts'

const FOREIGN = 'rebound.example:8080'
const PAGES = ['/', '/sign-up', '/sign-in', '/docs', '/docs/errors', '/assets/console.css', ...MEMBER_PAGES]

/** fetch lets nobody set the Host. */
async function get({ url }: Petstore, path: string, host: string, headers: Record<string, string> = {}) {
  using connection = new RawConnection(url)
  const lines = Object.entries({ Host: host, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  connection.send(`GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`)
  return await connection.answer()
}

describe('The console at home', () => {
  it('answers only to IP addresses and localhost: another name gets 421, a page or the Error body', async () => {
    await using petstore = await startPetstore()
    for (const path of PAGES) {
      const refused = await get(petstore, path, FOREIGN)
      const asResponse = new Response(refused.body, { status: refused.status, headers: [...refused.headers] })
      assert.match(
        await expectError(asResponse, 'misdirected_request'),
        /only to IP addresses and localhost.*got the Host "rebound\.example:8080"/,
      )
      const page = await get(petstore, path, FOREIGN, { Accept: 'text/html' })
      assert.equal(page.status, 421)
      assert.ok(page.body.includes('<h1>This console has another address</h1>') && page.body.includes(petstore.url))
      assert.ok(!page.body.includes('rebound.example'))
      for (const host of ['localhost:1', 'pets.localhost', '[::1]:8080', '192.0.2.1']) {
        assert.notEqual((await get(petstore, path, host)).status, 421, `${path} at ${host}`)
      }
    }
  })

  it('creates no account for a page of another site that was rebound to it', async () => {
    await using petstore = await startPetstore()
    const form = 'email=evil%40example.com&password=correct+horse+battery'
    using connection = new RawConnection(petstore.url)
    connection.send(
      `POST /sign-up HTTP/1.1\r\nHost: ${FOREIGN}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${form.length}\r\n\r\n${form}`,
    )
    assert.equal((await connection.answer()).status, 421)
  })

  it('leaves the interface, the health checks and the document alone', async () => {
    await using petstore = await startPetstore()
    assert.equal((await get(petstore, '/v1/pets', FOREIGN, { Authorization: `Bearer ${petstore.key}` })).status, 200)
    for (const path of ['/livez', '/readyz', '/openapi.json'])
      assert.equal((await get(petstore, path, FOREIGN)).status, 200, path)
    assert.equal((await get(petstore, '/nowhere', FOREIGN)).status, 404)
  })
})

describe('The console of a deployment', () => {
  const deployments: Record<string, string>[] = [
    { PETSTORE_STAGING_BASE_URL: 'https://staging.example/v1' },
    { PETSTORE_TRUST_PROXY: 'loopback' },
    { HOST: '0.0.0.0' },
  ]
  for (const env of deployments) {
    it(`answers to every name, and has no sign-up unless it is set: ${JSON.stringify(env)}`, async () => {
      await using petstore = await startPetstore({ env })
      assert.deepEqual([petstore.atHome, petstore.signup], [false, 'closed'])
      assert.equal((await get(petstore, '/', FOREIGN)).status, 200)
      assert.equal((await get(petstore, '/sign-up', FOREIGN)).status, 403)
      const { url } = petstore
      const visitor = new ConsoleClient(url.replace('0.0.0.0', '127.0.0.1'))
      assert.doesNotMatch((await visitor.get('/')).body, /href="\/sign-up"|an email address and a password/i)
      const sent = await visitor.submit('/sign-in', '/sign-in', { email: 'new@example.com', password: PASSWORD })
      assert.equal(sent.status, 400)
      const { csrf = '' } = await visitor.hiddenFields('/sign-in', '/sign-in')
      assert.equal((await visitor.post('/sign-up', { csrf, email: 'new@example.com', password: PASSWORD })).status, 403)
      assert.equal(await petstore.store.accounts.accountByEmail('new@example.com'), undefined)
    })
  }

  it('shows no address that a client made up: the configured one, or a place for the name', async () => {
    await using configured = await startPetstore({ env: { PETSTORE_STAGING_BASE_URL: 'https://staging.example/v1' } })
    await using open = await startPetstore({ env: { PETSTORE_TRUST_PROXY: '192.0.2.1' } })
    for (const path of ['/', '/docs/deprecations']) {
      const known = (await get(configured, path, FOREIGN)).body
      assert.ok(known.includes('https://staging.example/v1') && !known.includes('rebound'))
      const unknown = (await get(open, path, FOREIGN)).body
      assert.ok(unknown.includes('http://HOST/v1') && !unknown.includes('rebound'))
      assert.ok((await get(open, path, '192.0.2.7:99')).body.includes('http://192.0.2.7:99/v1'))
    }
  })

  it('in production has no sign-up on a loopback address either', async () => {
    await using petstore = await startPetstore({ env: { PETSTORE_ENVIRONMENT: 'production' } })
    assert.deepEqual([petstore.atHome, petstore.signup], [true, 'closed'])
    assert.equal((await new ConsoleClient(petstore.url).get('/sign-up')).status, 403)
  })
})

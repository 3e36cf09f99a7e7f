// Who reaches the console: under which names, and where sign-up is open although nobody has set it.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { MEMBER_PAGES } from '../harness/connections/console-client.ts'
import { type Petstore, startPetstore } from '../harness/harness.ts'
import { expectRawError, RawConnection } from '../harness/connections/raw-http.ts'

const FOREIGN = 'rebound.example:8080'
const PAGES = ['/', '/sign-up', '/sign-in', '/docs', '/docs/errors', '/assets/console.css', ...MEMBER_PAGES]

/** fetch lets nobody set the Host. */
async function get({ url }: { url: string }, path: string, host: string, headers: Record<string, string> = {}) {
  using connection = new RawConnection(url)
  const lines = Object.entries({ Host: host, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  connection.send(`GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`)
  return await connection.answer()
}

describe('The console at home', () => {
  let petstore: Petstore
  before(async () => {
    petstore = await startPetstore()
  })
  after(() => petstore[Symbol.asyncDispose]())

  it('answers only to IP addresses and localhost: another name gets 421, a page or the Error body', async () => {
    for (const path of PAGES) {
      const refused = await get(petstore, path, FOREIGN)
      assert.match(expectRawError(refused, 'misdirected_request'), /only to IP addresses and localhost/)
      const page = await get(petstore, path, FOREIGN, { Accept: 'text/html' })
      assert.equal(page.status, 421)
      assert.ok(page.body.includes('only to IP addresses and localhost') && page.body.includes(petstore.url))
      assert.ok(!page.body.includes('rebound.example'))
      for (const host of ['localhost:1', 'pets.localhost', '[::1]:8080', '192.0.2.1'])
        assert.notEqual((await get(petstore, path, host)).status, 421, `${path} at ${host}`)
    }
  })

  it('creates no account for a page of another site that was rebound to it', async () => {
    const form = 'email=evil%40example.com&password=correct+horse+battery'
    const head = ['POST /sign-up HTTP/1.1', `Host: ${FOREIGN}`, 'Content-Type: application/x-www-form-urlencoded']
    using connection = new RawConnection(petstore.url)
    connection.send([...head, `Content-Length: ${form.length}`, '', form].join('\r\n'))
    assert.equal((await connection.answer()).status, 421)
  })

  it('leaves the interface, the health checks and the document alone', async () => {
    assert.equal((await get(petstore, '/v1/pets', FOREIGN, { Authorization: `Bearer ${petstore.key}` })).status, 200)
    for (const path of ['/livez', '/readyz', '/openapi.json'])
      assert.equal((await get(petstore, path, FOREIGN)).status, 200, path)
    assert.equal((await get(petstore, '/nowhere', FOREIGN)).status, 404)
  })
})

describe('The console of a deployment', () => {
  // What else makes it one is in src/http/reach.test.ts, and what closed sign-up means in console/pages.test.ts.
  it('answers to every name, and has no sign-up unless it is set', async () => {
    await using petstore = await startPetstore({ env: { HOST: '0.0.0.0' } })
    assert.deepEqual([petstore.atHome, petstore.signup], [false, 'closed'])
    assert.equal((await get(petstore, '/', FOREIGN)).status, 200)
    assert.equal((await get(petstore, '/sign-up', FOREIGN)).status, 403)
  })

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
})

describe('The admin port', () => {
  const statuses = async ({ adminUrl }: Petstore, host: string) => {
    const paths = ['/metrics', '/livez', '/readyz', '/nowhere']
    return Promise.all(paths.map(async (path) => (await get({ url: adminUrl! }, path, host)).status))
  }

  it('of a loopback address answers only to IP addresses and localhost, and to a client that names no host', async () => {
    await using petstore = await startPetstore({ env: { PETSTORE_ADMIN_PORT: '0' } })
    for (const host of [FOREIGN, 'localhost.example', '127.0.0.1.example:80'])
      assert.deepEqual(await statuses(petstore, host), [421, 421, 421, 421], host)
    for (const host of ['localhost:9081', 'pets.localhost', '127.0.0.1', '[::1]:9081', ''])
      assert.deepEqual(await statuses(petstore, host), [200, 200, 200, 404], host)
    expectRawError(await get({ url: petstore.adminUrl! }, '/metrics', FOREIGN), 'misdirected_request')
    // As HAProxy checks health.
    using old = new RawConnection(petstore.adminUrl!)
    assert.equal((await old.ask('GET /readyz HTTP/1.0\r\n\r\n')).status, 200)
  })

  it('of another address answers to every name, such as that of a service of Kubernetes', async () => {
    await using petstore = await startPetstore({ env: { PETSTORE_ADMIN_PORT: '0', PETSTORE_ADMIN_HOST: '0.0.0.0' } })
    assert.deepEqual(await statuses(petstore, 'petstore.shop.svc:9081'), [200, 200, 200, 404])
  })
})

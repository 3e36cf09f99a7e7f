// Section 4.4 of the specification: what else is there, and what is not.
import assert from 'node:assert/strict'
import { METHODS } from 'node:http'
import { describe, it } from 'node:test'
import { examplePath, OPERATIONS } from '../../src/contract/operations.ts'
import { allowedAt, describeOnSqlite, expectError, startPetstore } from '../harness/harness.ts'
import { RawConnection } from '../harness/connections/raw-http.ts'

/** As the 404 of another path names them. */
const ADDRESSES = [...new Set(OPERATIONS.map(({ path }) => `/v1${path}`))].join(' and ')

/** fetch sends no CONNECT and no TRACE; framing.test.ts does. */
const SENDABLE = METHODS.filter((method) => !['CONNECT', 'TRACE'].includes(method))

describeOnSqlite('4.4 Other operations', (service) => {
  for (const [path, allow] of Object.entries({
    ...Object.fromEntries(OPERATIONS.map((operation) => [`/v1${examplePath(operation)}`, allowedAt(operation.path)])),
    '/livez': 'GET, HEAD, OPTIONS',
    '/v1/p%65ts': allowedAt('/pets'),
  })) {
    it(`answers 405 with Allow to every other method at ${path}, without a key and whatever the body`, async () => {
      for (const method of SENDABLE) {
        if (allow.split(', ').includes(method)) continue
        const response = await fetch(service().url + path, {
          method,
          body: 'x'.repeat(20_000),
          headers: { 'Content-Type': 'text/plain' },
        })
        assert.equal(response.headers.get('allow'), allow, method)
        await expectError(response, 'method_not_allowed')
      }
    })

    it(`answers OPTIONS at ${path} with the methods`, async () => {
      const response = await fetch(service().url + path, { method: 'OPTIONS' })
      assert.equal(response.status, 204)
      assert.equal(response.headers.get('allow'), allow)
      assert.equal(await response.text(), '')
    })
  }

  const nowhere = [
    '/v1',
    '/v1/',
    '/v2/pets',
    '/pets',
    '/V1/pets',
    '/v1/Pets',
    '/v1/pets.json',
    '/v1//pets',
    '//v1/pets',
    '/v1/store/orders',
    '/v1/categories',
    '/messages',
    '/v1/messages',
    '/metrics',
    '/v1/%zz',
    '/v1/pets%2F1',
    '/v1/pets%3Flimit=1',
    '/v1/pets;limit=1',
    '/livez/',
    '/.env',
    '/v1/__proto__',
    '/constructor',
  ]
  for (const path of nowhere) {
    it(`has nothing at ${path}, whatever the method, key or body`, async () => {
      await expectError(await fetch(service().url + path), 'unknown_path')
      for (const method of ['POST', 'DELETE', 'OPTIONS', 'QUERY', 'PUT']) {
        const response = await fetch(service().url + path, {
          method,
          body: 'x'.repeat(20_000),
          headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${service().key}` },
        })
        await expectError(response, 'unknown_path')
      }
    })
  }

  it('names the addresses of the operations at any other path', async () => {
    for (const path of ['/v1', '/v1/', '/pets', '/v1/pets/', '/v2/pets'])
      assert.equal(
        await expectError(await fetch(service().url + path), 'unknown_path'),
        `There is nothing at "${path}"; the operations are at ${ADDRESSES}.`,
      )
  })

  it('names the console where the key is missing', async () => {
    assert.match(
      await expectError(await fetch(`${service().url}/v1/pets`), 'missing_api_key'),
      /generate a key in the console, at \/ of this service/,
    )
  })

  it('answers HEAD like GET, without the body', async () => {
    for (const path of ['/pets', '/pets?limit=1', '/pets/999999', '/pets?limit=0']) {
      const [get, head] = [await service().call(path), await service().call(path, { method: 'HEAD' })]
      assert.equal(head.status, get.status)
      for (const name of ['content-type', 'content-length', 'etag', 'link', 'cache-control']) {
        assert.equal(head.headers.get(name), get.headers.get(name), name)
      }
      assert.equal(await head.text(), '')
    }
  })

  it('ignores a body where none is asked for', async () => {
    const { hostname, port } = new URL(service().url)
    const { request } = await import('node:http')
    const status = await new Promise((resolve, reject) => {
      const headers = { Authorization: `Bearer ${service().key}`, 'Content-Type': 'text/plain' }
      request({ hostname, port, path: '/v1/pets', method: 'GET', headers }, (response) => {
        response.resume().on('end', () => resolve(response.statusCode))
      })
        .on('error', reject)
        .end('x'.repeat(50_000))
    })
    assert.equal(status, 200)
  })
})

describe('4.4 Outside /v1', () => {
  it('tells that it is alive and ready, and its document, without a key', async () => {
    await using petstore = await startPetstore()
    assert.deepEqual(await (await fetch(`${petstore.url}/livez`)).json(), { status: 'alive' })
    assert.deepEqual(await (await fetch(`${petstore.url}/readyz`)).json(), { status: 'ready' })
    assert.equal((await fetch(`${petstore.url}/openapi.json`)).headers.get('content-type'), 'application/json')
  })

  it('has its health on the admin port too, with the same answers', async () => {
    // In this process alone, since its store is closed below.
    await using petstore = await startPetstore({ env: { PETSTORE_ADMIN_PORT: '0' }, config: { workers: 1 } })
    const ask = async (base: string | undefined, path: string) => {
      const response = await fetch(base + path, { headers: { 'Request-Id': 'same' } })
      const headers = [...response.headers].filter(([name]) => name !== 'date' && name !== 'keep-alive')
      return { status: response.status, headers, body: await response.text() }
    }
    for (const path of ['/livez', '/readyz'])
      assert.deepEqual(await ask(petstore.adminUrl, path), await ask(petstore.url, path))
    await petstore.store.close()
    const notReady = await ask(petstore.adminUrl, '/readyz')
    assert.deepEqual([notReady.status, notReady.headers.some(([name]) => name === 'retry-after')], [503, true])
    assert.deepEqual(notReady, await ask(petstore.url, '/readyz'))
    assert.equal((await ask(petstore.adminUrl, '/livez')).status, 200)
  })

  it('has its metrics on the admin port, and no operation or page there', async () => {
    await using petstore = await startPetstore({ env: { PETSTORE_ADMIN_PORT: '0' } })
    const started = performance.now()
    await petstore.call('/pets')
    await petstore.call('/pets/1')
    const text = await (await fetch(`${petstore.adminUrl}/metrics`)).text()
    assert.match(text, /petstore_requests_total\{operation="listPets",status="200"\} 1/)
    assert.match(text, /petstore_deprecated_requests_total\{operation="getPet"\} 1/)
    assert.match(text, /petstore_store_duration_seconds_count\{method="pets.list"\} 1/)
    const listed = Number(
      /petstore_request_duration_seconds_sum\{operation="listPets",class="2xx"\} (\S+)/.exec(text)?.[1],
    )
    assert.ok(listed > 0 && listed < (performance.now() - started) / 1000, `a list took ${listed} s`)
    assert.match(text, /process_cpu_seconds_total/)
    await expectError(await fetch(`${petstore.url}/metrics`), 'unknown_path')
    for (const path of ['/v1/pets', '/', '/metrics/more', '/metrics2'])
      await expectError(await fetch(petstore.adminUrl + path), 'unknown_path')
  })

  it('has its admin port on this machine alone, or on the address that is set for it, wherever the service listens', async () => {
    for (const [env, expected] of [
      [{ HOST: '0.0.0.0' }, 'http://127.0.0.1:'],
      [{ PETSTORE_ADMIN_HOST: '0.0.0.0' }, 'http://0.0.0.0:'],
    ] as const) {
      await using petstore = await startPetstore({ env: { PETSTORE_ADMIN_PORT: '0', ...env } })
      assert.ok(petstore.adminUrl?.startsWith(expected), String(petstore.adminUrl))
      assert.equal((await fetch(`${petstore.adminUrl}/livez`)).status, 200)
    }
  })

  it('answers on the admin port whatever query a scraper or probe adds, and refuses other methods', async () => {
    await using petstore = await startPetstore({ env: { PETSTORE_ADMIN_PORT: '0' } })
    for (const path of ['/metrics', '/livez', '/readyz']) {
      for (const query of ['?', '?verbose', '?name[]=up&x=/livez'])
        assert.equal((await fetch(petstore.adminUrl + path + query)).status, 200, path + query)
      assert.equal((await fetch(petstore.adminUrl + path, { method: 'HEAD' })).status, 200)
      const refused = await fetch(petstore.adminUrl + path, { method: 'DELETE' })
      assert.equal(refused.headers.get('allow'), 'GET, HEAD')
      await expectError(refused, 'method_not_allowed')
    }
  })

  it('counts in its metrics what never became a request too: broken HTTP, CONNECT, Expect', async () => {
    await using petstore = await startPetstore({ env: { PETSTORE_ADMIN_PORT: '0' } })
    const HOST = 'Host: pets.example\r\n'
    for (const bytes of [
      'NONSENSE\r\n\r\n',
      `CONNECT pets.example:443 HTTP/1.1\r\n${HOST}\r\n`,
      `GET / HTTP/1.1\r\n${HOST}Expect: a pony\r\n\r\n`,
    ]) {
      using connection = new RawConnection(petstore.url)
      connection.send(bytes)
      await connection.answer()
    }
    const text = await (await fetch(`${petstore.adminUrl}/metrics`)).text()
    const counted = [...text.matchAll(/^petstore_requests_total\{operation="none",status="(\d+)"\} (\d+)$/gm)]
    assert.deepEqual(Object.fromEntries(counted.map(([, status, count]) => [status, count])), {
      400: '1',
      405: '1',
      417: '1',
    })
  })
})

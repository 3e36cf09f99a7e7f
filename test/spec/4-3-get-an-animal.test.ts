// Section 4.3 of the specification: fetching one animal, deprecated and to be removed on 5 December 2030.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ENGINES } from '../harness/databases/engines.ts'
import { expectRawError, RawConnection } from '../harness/connections/raw-http.ts'
import { describeOnSqlite, expectError, startPetstore } from '../harness/harness.ts'

const SUNSET = Date.UTC(2030, 11, 5)

function assertDeprecated({ headers }: { headers: { get(name: string): string | null | undefined } }): void {
  assert.equal(headers.get('deprecation'), '@1794614400')
  assert.equal(headers.get('sunset'), 'Thu, 05 Dec 2030 00:00:00 GMT')
  const link = headers.get('link') ?? ''
  assert.match(link, /<\/docs\/[^>]+>; rel="deprecation"/)
  assert.match(link, /<\/v1\/pets\?status=available>; rel="successor-version"/)
}

describeOnSqlite('4.3 Get an animal', (service) => {
  const addRex = async () => {
    const text = await (await service().add({ name: 'Rex', categoryId: 1 })).text()
    return { text, id: /"id":(\d+)/.exec(text)![1]! }
  }

  it('answers 200 with the animal', async () => {
    const { text, id } = await addRex()
    const response = await service().call(`/pets/${id}`)
    assert.equal(response.status, 200)
    assert.equal(response.headers.get('content-type'), 'application/json')
    assert.equal(await response.text(), text)
  })

  it('takes an id whose digits are percent-encoded: it is the same address', async () => {
    const { text, id } = await addRex()
    const encoded = [...id].map((digit) => `%${digit.charCodeAt(0).toString(16)}`).join('')
    assert.equal(await (await service().call(`/pets/${encoded}`)).text(), text)
  })

  const ids = [
    '0',
    '-1',
    '9223372036854775807',
    '-9223372036854775808',
    '9223372036854775808',
    '1'.repeat(200),
    '9'.repeat(12_000),
    '1.0',
    '1e0',
    '+1',
    '01',
    '-0',
    '0x1',
    '%201',
    '1%20',
    'abc',
    'null',
    '%00',
    '1%00',
    '%zz',
    '%',
    '%E0%A4%A',
    '%FF',
    '1%2F2',
    '1%3F',
    '..%2f',
    '%E2%91%A0',
    "1'--",
    '1;2',
    '*',
    '🐈',
  ]
  for (const id of ids) {
    it(`answers 404 to the id ${id.slice(0, 30)}, key first and deprecated like any other`, async () => {
      const response = await service().call(`/pets/${id}`)
      assertDeprecated(response)
      const message = await expectError(response, 'pet_not_found')
      assert.ok(message.length < 500)
      const withoutKey = await fetch(`${service().url}/v1/pets/${id}`)
      assertDeprecated(withoutKey)
      await expectError(withoutKey, 'missing_api_key')
    })
  }

  for (const path of ['/pets/', '/pets/?limit=1', '/pets/1/', '/pets/1/2', '/pets//']) {
    it(`knows no path ${path}, with a key or without`, async () => {
      await expectError(await service().call(path), 'unknown_path')
      await expectError(await fetch(`${service().url}/v1${path}`), 'unknown_path')
    })
  }

  it('is deprecated on every answer: 200, 304, 401, 404, and to HEAD', async () => {
    const { id } = await addRex()
    const found = await service().call(`/pets/${id}`)
    assertDeprecated(found)
    const unchanged = await service().call(`/pets/${id}`, { headers: { 'If-None-Match': found.headers.get('etag')! } })
    assert.equal(unchanged.status, 304)
    assertDeprecated(unchanged)
    assertDeprecated(await service().call(`/pets/${id}`, { headers: { Authorization: 'Bearer nonsense' } }))
    const head = await service().call(`/pets/${id}`, { method: 'HEAD' })
    assert.equal(head.status, 200)
    assertDeprecated(head)
  })

  it('is deprecated also where the request itself is refused, which a page may read', async () => {
    const refusals = {
      'Expect: tea': 'expectation_failed',
      'Host: b': 'malformed_request',
      'Transfer-Encoding: chunked\r\n\r\nZZ': 'malformed_request',
    } as const
    for (const [header, code] of Object.entries(refusals)) {
      using connection = new RawConnection(service().url)
      const answer = await connection.ask(`GET /v1/pets/1 HTTP/1.1\r\nHost: a\r\nOrigin: http://b\r\n${header}\r\n\r\n`)
      expectRawError(answer, code)
      assertDeprecated(answer)
      assert.equal(answer.headers.get('access-control-allow-origin'), '*')
    }
  })

  it('is the only deprecated operation', async () => {
    for (const response of [await service().call('/pets'), await service().add({ name: 'Rex', categoryId: 1 })]) {
      assert.equal(response.headers.get('deprecation'), null)
      assert.equal(response.headers.get('sunset'), null)
    }
  })
})

describe('4.3 The use of getPet', () => {
  for (const engine of ENGINES) {
    it(`is counted per key, on ${engine.name}`, async () => {
      await using database = await engine.newDatabase()
      let used: { id: string }
      {
        await using petstore = await startPetstore({ database: database.url })
        for (const path of ['/pets/1', '/pets/2', '/pets']) await petstore.call(path)
        used = petstore.apiKey
      }
      // Counts are written in batches, the last of them when the service stops.
      await using again = await startPetstore({ database: database.url })
      const counts = await again.store.accounts.callsSince([used.id], 0)
      const ofPets = counts.filter(({ operation }) => operation === 'getPet')
      assert.equal(
        ofPets.reduce((sum, { calls }) => sum + calls, 0),
        2,
      )
    })
  }
})

describe('4.3 The removal on 5 December 2030', () => {
  it('comes at midnight UTC: 410 with the replacement, and 201 without a Location', async () => {
    let now = SUNSET - 1
    await using petstore = await startPetstore({ clock: () => now })
    const { id } = (await (await petstore.add({ name: 'Rex', categoryId: 1 })).json()) as { id: number }
    const before = await petstore.add({ name: 'Rex', categoryId: 1 })
    assert.ok(before.headers.get('location'))
    assert.equal((await petstore.call(`/pets/${id}`)).status, 200)

    now = SUNSET
    const after = await petstore.add({ name: 'Rex', categoryId: 1 })
    assert.equal(after.status, 201)
    assert.equal(after.headers.get('location'), null)
    for (const path of [`/pets/${id}`, '/pets/999999', '/pets/abc']) {
      const gone = await petstore.call(path)
      assertDeprecated(gone)
      const message = await expectError(gone, 'operation_removed')
      assert.equal(message, 'getPet was removed on 2030-12-05. Use GET /v1/pets?status=available instead.')
    }
    assert.equal((await petstore.call(`/pets/${id}`, { method: 'HEAD' })).status, 410)
    await expectError(await fetch(`${petstore.url}/v1/pets/${id}`), 'missing_api_key')
    assert.equal((await petstore.call('/pets?status=available')).status, 200)
  })

  it('leaves the other checks where they are: 410 comes before the rate limit', async () => {
    await using petstore = await startPetstore({ clock: () => SUNSET, env: { PETSTORE_RATE_LIMIT: '1/3600' } })
    assert.equal((await petstore.call('/pets')).status, 200)
    await expectError(await petstore.call('/pets'), 'rate_limited')
    await expectError(await petstore.call('/pets/1'), 'operation_removed')
  })
})

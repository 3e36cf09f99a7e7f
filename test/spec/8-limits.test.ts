// Section 8 of the specification: limits; and those it leaves open, of request size and rate.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { describeService, expectError, makeKey, startPetstore } from '../harness/harness.ts'
import { RawConnection } from '../harness/connections/raw-http.ts'

describeService('8. The limit of a body', (service) => {
  const ofSize = (bytes: number, name = 'Rex') => {
    const [start, end] = [`{"name":"${name}","categoryId":1,"ignored":"`, '"}']
    return start + 'x'.repeat(bytes - Buffer.byteLength(start + end)) + end
  }
  const chunked = (text: string): RequestInit => ({
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    duplex: 'half',
    body: new Blob([text]).stream(),
  })

  it('is 16 KiB: exactly that much is taken', async () => {
    assert.equal((await service().add(ofSize(16_384))).status, 201)
    assert.equal((await service().call('/pets', chunked(ofSize(16_384)))).status, 201)
    assert.equal((await service().add(ofSize(16_384, '🐈'))).status, 201)
  })

  it('is 16 KiB: one byte more is refused, with Content-Length and without, and nothing is stored', async () => {
    const before = await (await service().call('/pets?limit=1')).text()
    assert.match(await expectError(await service().add(ofSize(16_385)), 'body_too_large'), /at most 16384 bytes/)
    await expectError(await service().call('/pets', chunked(ofSize(16_385))), 'body_too_large')
    await expectError(await service().add(ofSize(16_385, '🐈')), 'body_too_large')
    await expectError(await service().call('/pets', chunked(ofSize(1_000_000))), 'body_too_large')
    assert.equal(await (await service().call('/pets?limit=1')).text(), before)
  })

  it('is the same for a body that comes after the headers, in parts', async () => {
    const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`
    for (const [bytes, status] of [
      [16_384, 201],
      [16_385, 413],
    ] as const) {
      using connection = new RawConnection(service().url)
      const headers = `Host: pets.example\r\nAuthorization: Bearer ${service().key}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n`
      connection.send(`POST /v1/pets HTTP/1.1\r\n${headers}Expect: 100-continue\r\n\r\n`)
      assert.equal((await connection.answer()).status, 100, 'the headers have arrived')
      const body = ofSize(bytes)
      connection.send(chunk(body.slice(0, 10_000)))
      connection.send(chunk(body.slice(10_000)) + chunk(''))
      assert.equal((await connection.answer()).status, status, `${bytes} bytes`)
    }
  })
})

describe('8. The rate limit', () => {
  it('is off unless set', async () => {
    await using petstore = await startPetstore()
    const responses = await Promise.all(Array.from({ length: 100 }, () => petstore.call('/pets?limit=1')))
    assert.ok(
      responses.every(
        ({ status, headers }) => status === 200 && !headers.has('ratelimit') && !headers.has('ratelimit-policy'),
      ),
    )
  })

  it('counts per account, tells what is left, and answers 429 with Retry-After past it', async () => {
    let now = 0
    await using petstore = await startPetstore({ env: { PETSTORE_RATE_LIMIT: '3/60' }, monotonic: () => now })
    const second = await makeKey(petstore)
    for (const left of [2, 1, 0]) {
      const { status, headers } = await petstore.call('/pets')
      assert.deepEqual(
        [status, headers.get('ratelimit'), headers.get('ratelimit-policy')],
        [200, `"default";r=${left};t=60`, '"default";q=3;w=60'],
      )
    }
    now += 20_500
    const limited = await petstore.call('/pets/1')
    assert.equal(limited.headers.get('retry-after'), '40')
    assert.equal(limited.headers.get('ratelimit'), '"default";r=0;t=40')
    assert.ok(limited.headers.has('deprecation'))
    assert.match(await expectError(limited, 'rate_limited'), /more than 3 requests in 60 s\. Try again in 40 s/)
    await expectError(await petstore.add('{"name":"Rex","categoryId":1}'), 'rate_limited')

    const other = await fetch(`${petstore.url}/v1/pets`, { headers: { Authorization: `Bearer ${second.key}` } })
    assert.equal(other.status, 200, 'another account has an allowance of its own')

    now += 39_499
    await expectError(await petstore.call('/pets'), 'rate_limited')
    now += 1
    assert.equal((await petstore.call('/pets')).status, 200, 'the next window starts afresh, to the millisecond')
  })

  it('is never told to a bad key, which is always a 401, nor to who needs none', async () => {
    await using petstore = await startPetstore({ env: { PETSTORE_RATE_LIMIT: '1/3600' } })
    await petstore.call('/pets')
    for (let time = 0; time < 5; time += 1) {
      const response = await petstore.call('/pets', { headers: { Authorization: 'Bearer nonsense' } })
      assert.equal(response.headers.get('ratelimit'), null)
      await expectError(response, 'malformed_api_key')
      assert.equal((await fetch(`${petstore.url}/livez`)).status, 200)
    }
  })
})

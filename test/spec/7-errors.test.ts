// Section 7 of the specification: one Error body everywhere, the codes, and which check comes first.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Keyring } from '../../src/accounts/api-keys.ts'
import { ERRORS } from '../../src/contract/errors.ts'
import { describeOnSqlite, expectError, startPetstore } from '../harness/harness.ts'

describe('7. The error codes', () => {
  it('are snake_case, with cause and fix in sentences, and a 4xx or 5xx status', () => {
    for (const [code, { status, cause, fix }] of Object.entries(ERRORS)) {
      assert.match(code, /^[a-z]+(?:_[a-z]+)*$/)
      assert.ok(status >= 400 && status < 600)
      for (const text of [cause, fix]) assert.match(text, /^[A-Z].*\.$/s)
    }
  })
})

describeOnSqlite('7. Errors', (service) => {
  const send = (path: string, init: RequestInit = {}) => fetch(service().url + path, init)

  it('are the Error body with status repeated: 400, 401, 404, 405, 413', async () => {
    await expectError(await service().add('{}'), 'invalid_pet')
    await expectError(await send('/v1/pets'), 'missing_api_key')
    await expectError(await service().call('/pets/1'), 'pet_not_found')
    await expectError(await send('/nowhere'), 'unknown_path')
    await expectError(await send('/v1/pets', { method: 'DELETE' }), 'method_not_allowed')
    await expectError(await service().add('x'.repeat(20_000)), 'body_too_large')
  })

  it('follow the hints: 401 for a bad Authorization header; 400 for bad JSON, a missing field, a missing Content-Type', async () => {
    await expectError(await send('/v1/pets', { headers: { Authorization: 'nonsense' } }), 'malformed_authorization')
    await expectError(await service().add('{'), 'invalid_json')
    await expectError(await service().add('{"name":"Rex"}'), 'invalid_pet')
    await expectError(
      await service().call('/pets', { method: 'POST', body: new Blob(['{"name":"Rex","categoryId":1}']) }),
      'unsupported_content_type',
    )
  })

  it('quote what came, shortened, and stay valid JSON whatever it was', async () => {
    for (const value of ['"', '\\', '\u0001', '\u2028', '🐈'.repeat(200), '\uFFFF', '<script>', '%s%n']) {
      const message = await expectError(
        await service().call(`/pets?status=${encodeURIComponent(value)}`),
        'invalid_parameter',
      )
      assert.ok(message.length < 300)
    }
    const message = await expectError(await service().add('{"name":"\\ud800","categoryId":1}'), 'invalid_pet')
    assert.ok(message.isWellFormed())
  })
})

describe('7. An internal error', () => {
  it('is a 500 that names the request and nothing of its cause, is logged, and the service goes on', async () => {
    // No header can carry this base address, which no setting would let in: the answer to a create can't be written.
    await using petstore = await startPetstore({ config: { stagingBaseUrl: 'http://pets.example/🐈/v1' } })
    const response = await petstore.add({ name: 'Rex', categoryId: 1 }, { 'Request-Id': 'broken' })
    assert.equal(
      await expectError(response, 'internal_error'),
      'Internal error of the service; report it with the request id broken.',
    )
    const line = petstore.logged.find(({ level }) => level === 'error')
    assert.equal(line?.['requestId'], 'broken')
    assert.match(JSON.stringify(line), /Invalid character in header content/)
    assert.equal((await petstore.call('/pets')).status, 200)
  })
})

describe('7. An internal error of a check', () => {
  it('is a 500 too, if the check fails before anything is waited for, and the service goes on', async (context) => {
    await using petstore = await startPetstore()
    const broken = context.mock.method(Keyring.prototype, 'recall', () => {
      throw new Error('out of order')
    })
    await expectError(await petstore.call('/pets'), 'internal_error')
    broken.mock.restore()
    assert.equal((await petstore.call('/pets')).status, 200)
  })
})

describe('7. Which check comes first', () => {
  const everythingWrong = {
    method: 'POST',
    body: 'x'.repeat(20_000),
    headers: { 'Content-Type': 'text/plain', 'Idempotency-Key': '' },
  }

  it('is path, method, key, rate, content', async () => {
    await using petstore = await startPetstore({ env: { PETSTORE_RATE_LIMIT: '1/3600' } })
    const { url, key } = petstore
    const authorized = { ...everythingWrong, headers: { ...everythingWrong.headers, Authorization: `Bearer ${key}` } }
    await expectError(await fetch(`${url}/v1/nothing`, everythingWrong), 'unknown_path')
    await expectError(await fetch(`${url}/v1/pets`, { ...everythingWrong, method: 'PUT' }), 'method_not_allowed')
    await expectError(await fetch(`${url}/v1/pets`, everythingWrong), 'missing_api_key')
    assert.equal((await petstore.call('/pets')).status, 200)
    await expectError(await fetch(`${url}/v1/pets`, authorized), 'rate_limited')
    await expectError(await petstore.call('/pets?limit=0'), 'rate_limited')
  })

  it('is content last: its size, its type, the Idempotency-Key, then the body', async () => {
    await using petstore = await startPetstore()
    const post = (headers: Record<string, string>, body: string) =>
      petstore.call('/pets', { method: 'POST', headers, body })
    await expectError(
      await post({ 'Content-Type': 'application/json', 'Idempotency-Key': '' }, 'x'.repeat(20_000)),
      'body_too_large',
    )
    await expectError(
      await post({ 'Content-Type': 'text/plain', 'Idempotency-Key': '' }, '{'),
      'unsupported_content_type',
    )
    await expectError(
      await post({ 'Content-Type': 'application/json', 'Idempotency-Key': '' }, '{'),
      'invalid_idempotency_key',
    )
    await expectError(await post({ 'Content-Type': 'application/json' }, '{'), 'invalid_json')
  })
})

// Section 4.2 of the specification: adding an animal.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { ENGINES } from '../harness/databases/engines.ts'
import { describeService, expectError, type Petstore, startPetstore } from '../harness/harness.ts'

const REX = '{"name":"Rex","categoryId":3}'

describeService('4.2 Add an animal', (service) => {
  const post = (body: NonNullable<RequestInit['body']> | null, headers: Record<string, string> = {}) =>
    service().call('/pets', { method: 'POST', body, headers })
  const count = async ({ store }: Petstore) =>
    Object.values(await store.pets.countByStatus()).reduce((sum, some) => sum + some, 0)
  /** What is refused leaves nothing behind. */
  const refused = async (response: Promise<Response>, code: Parameters<typeof expectError>[1]) => {
    const before = await count(service())
    const message = await expectError(await response, code)
    assert.equal(await count(service()), before)
    return message
  }

  it('answers 201 with the Pet, its id and its address', async () => {
    const response = await service().add(REX)
    assert.equal(response.status, 201)
    assert.equal(response.headers.get('content-type'), 'application/json')
    const pet = (await response.json()) as { id: number }
    assert.deepEqual(pet, { id: pet.id, name: 'Rex', categoryId: 3, status: 'available' })
    assert.equal(response.headers.get('location'), `/v1/pets/${pet.id}`)
  })

  it('leads by its Location to the same animal, which the list has too', async () => {
    const response = await service().add(REX)
    const made = await response.text()
    const { url, key } = service()
    const found = await fetch(url + response.headers.get('location'), { headers: { Authorization: `Bearer ${key}` } })
    assert.equal(await found.text(), made)
    assert.equal(await (await service().call('/pets?limit=1')).text(), `[${made}]`)
  })

  for (const type of [
    'application/json',
    'APPLICATION/JSON',
    'application/json; charset=utf-8',
    'application/json;charset="UTF-8"',
    'application/json ;a=b',
    'application/json; charset=utf8',
  ]) {
    it(`takes Content-Type: ${type}`, async () => assert.equal((await post(REX, { 'Content-Type': type })).status, 201))
  }

  for (const type of [
    'text/plain',
    'application/x-www-form-urlencoded',
    'application/json5',
    'application/jsonx',
    'text/json',
    'application/vnd.api+json',
    'x-application/json',
    'text/plain; a=application/json',
    'application/json, text/plain',
    'application/*',
    '*/*',
    ';',
    'application/json; charset=utf-16',
    'application/json; charset=latin1',
    'application/json;  charset = latin1',
    'application/json; charset=utf-81',
    'application/json; charset=xutf-8',
    'application/json; charset=utf-8; charset=utf-16',
    'application/json; charset=',
  ]) {
    it(`refuses Content-Type: ${type}`, async () => {
      assert.match(await refused(post(REX, { 'Content-Type': type }), 'unsupported_content_type'), /, got /)
    })
  }

  it('refuses a body without Content-Type', async () => {
    const message = await refused(post(new Blob([REX])), 'unsupported_content_type')
    assert.equal(message, 'The body must have Content-Type: application/json, got none.')
  })

  for (const encoding of ['gzip', 'br', 'deflate', 'identity, gzip', 'gzip, identity', 'made-up']) {
    it(`refuses Content-Encoding: ${encoding}`, async () => {
      await refused(service().add(REX, { 'Content-Encoding': encoding }), 'unsupported_content_type')
    })
  }

  for (const encoding of ['identity', 'Identity']) {
    it(`takes Content-Encoding: ${encoding}, which changes nothing`, async () => {
      assert.equal((await service().add(REX, { 'Content-Encoding': encoding })).status, 201)
    })
  }

  it('refuses a missing body, with and without a Content-Type', async () => {
    await refused(post(null), 'missing_body')
    await refused(post(null, { 'Content-Type': 'application/json' }), 'missing_body')
    await refused(post('', { 'Content-Type': 'application/json' }), 'missing_body')
  })

  for (const body of [
    '{',
    '}',
    '{"name":"Rex","categoryId":3,}',
    "{'name':'Rex'}",
    'name=Rex',
    '{"name":"Rex","categoryId":03}',
    '{"name":"Rex","categoryId":NaN}',
    '{"name":"Rex" "categoryId":3}',
    REX + REX,
    `${REX} //`,
    '\u0000',
    '\uFEFF' + REX,
    ' ',
    '"Rex',
    '{"name":"a\nb","categoryId":1}',
    '['.repeat(8000) + ']'.repeat(8000),
    '{"a":'.repeat(3000),
  ]) {
    it(`refuses what is not JSON: ${JSON.stringify(body.slice(0, 40))}`, async () => {
      assert.match(
        await refused(service().add(body), 'invalid_json'),
        /^The body is (?:not valid JSON: |nested too deep)/,
      )
    })
  }

  it('refuses bytes that are not UTF-8', async () => {
    const headers = { 'Content-Type': 'application/json' }
    const broken = [[0xff], [0xc3], [0xed, 0xa0, 0x80], [0xc0, 0xaf], [0xf4, 0x90, 0x80, 0x80]]
    for (const bytes of broken) {
      const body = Buffer.concat([Buffer.from('{"name":"'), Buffer.from(bytes), Buffer.from('","categoryId":1}')])
      assert.equal(await refused(post(body, headers), 'invalid_json'), 'The body is not valid UTF-8.')
    }
    await refused(post(Buffer.from(REX, 'utf16le'), headers), 'invalid_json')
  })

  for (const [body, came] of Object.entries({
    '[]': 'an array',
    null: 'null',
    '"Rex"': '"Rex"',
    '7': '7',
    '1.5': '1.5',
    true: 'true',
    [`[${REX}]`]: 'an array',
  })) {
    it(`refuses a body that is no object: ${body}`, async () => {
      assert.equal(await refused(service().add(body), 'invalid_pet'), `The body must be a JSON object, got ${came}.`)
    })
  }

  it('names each required field that is missing', async () => {
    assert.match(await refused(service().add('{}'), 'invalid_pet'), /^name is missing: .* categoryId is missing: /)
    assert.match(await refused(service().add('{"name":"Rex"}'), 'invalid_pet'), /^categoryId is missing: /)
    assert.match(await refused(service().add('{"categoryId":1}'), 'invalid_pet'), /^name is missing: /)
  })

  it('takes no query parameters and ignores them', async () => {
    assert.equal(
      (
        await service().call('/pets?limit=0&status=x', {
          method: 'POST',
          body: REX,
          headers: { 'Content-Type': 'application/json' },
        })
      ).status,
      201,
    )
  })
})

for (const engine of ENGINES) {
  it(`4.2 An animal that was answered is there after a restart, on ${engine.name}`, async () => {
    await using database = await engine.newDatabase()
    let made: string
    {
      await using petstore = await startPetstore({ database: database.url })
      made = await (await petstore.add(REX)).text()
    }
    await using again = await startPetstore({ database: database.url })
    assert.equal(await (await again.call('/pets')).text(), `[${made}]`)
  })
}

// Section 2 of the specification: resources and their fields, and what was decided where it is silent.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { PET_STATUSES } from '../../src/contract/pets.ts'
import { describeService, expectError } from '../harness/harness.ts'

const CATEGORY_RANGE = 'an integer from -9223372036854775808 to 9223372036854775807'

describeService('2. Resources', (service) => {
  const refused = async (body: unknown) => expectError(await service().add(body), 'invalid_pet')
  const added = async (body: unknown) => {
    const response = await service().add(body)
    const text = await response.text()
    assert.equal(response.status, 201, text)
    return text
  }
  const named = (name: string) => ({ name, categoryId: 1 })
  const newest = async () => (await service().call('/pets?limit=1')).text()

  it('answers a Pet with all fields of NewPet and the id, and nothing else', async () => {
    const pet = JSON.parse(await added({ name: 'Rex', categoryId: 3, status: 'sold' })) as Record<string, unknown>
    assert.deepEqual(Object.keys(pet).toSorted(), ['categoryId', 'id', 'name', 'status'])
    assert.equal(typeof pet['id'], 'number')
    assert.deepEqual(pet, { id: pet['id'], name: 'Rex', categoryId: 3, status: 'sold' })
  })

  for (const status of PET_STATUSES) {
    it(`takes the status ${status} and answers it`, async () => {
      assert.match(await added({ ...named('Rex'), status }), new RegExp(`"status":"${status}"`))
    })
  }

  it('stores an omitted status as available', async () => {
    assert.match(await added(named('Rex')), /"status":"available"/)
    assert.match(await newest(), /"status":"available"/)
  })

  for (const status of ['Available', ' sold', 'sold\u0000', '', 'unknown', null, 1, true, ['sold'], { is: 'sold' }]) {
    it(`refuses the status ${JSON.stringify(status)}`, async () => {
      assert.match(await refused({ ...named('Rex'), status }), /^status must be one of available, pending, sold, got /)
    })
  }

  it('says all that is wrong at once', async () => {
    const message = await refused({ name: 7, status: 'gone' })
    assert.match(message, /name must be a string/)
    assert.match(message, /categoryId is missing/)
    assert.match(message, /status must be one of/)
  })

  const names = [
    'x',
    ' Rex ',
    'Rex\n',
    '\u0001',
    'é',
    'e\u0301',
    '🐈‍⬛',
    'עברית',
    "'; DROP TABLE pets;--",
    '<script>',
    '\u200B',
    '𝕏',
    '\uFFFD',
    'a\u2028b',
  ]
  for (const name of names) {
    it(`keeps the name ${JSON.stringify(name)} exactly as sent`, async () => {
      const pet = JSON.parse(await added(named(name))) as { id: number; name: string }
      assert.equal(pet.name, name)
      const [first] = JSON.parse(await newest()) as { id: number; name: string }[]
      assert.deepEqual(first, { id: pet.id, name, categoryId: 1, status: 'available' })
    })
  }

  it('counts a name in code points, not in UTF-16 units or what looks like one character', async () => {
    await added(named('🐈'.repeat(255)))
    await refused(named('🐈'.repeat(256)))
    await refused(named('x'.repeat(256)))
    await added(named('e\u0301'.repeat(127) + 'x'))
    await refused(named('e\u0301'.repeat(128)))
    await refused(named('👨‍👩‍👧‍👦'.repeat(40)))
  })

  for (const name of [
    '""',
    '" "',
    '" \\t\\n\\r\\u00a0\\u3000"',
    '"a\\u0000b"',
    '"\\ud800"',
    '"a\\udc00b"',
    '"\\udc00\\ud800"',
    'null',
    '7',
    'true',
    '["Rex"]',
    '{}',
  ]) {
    it(`refuses the name ${name}`, async () => {
      const message = await refused(`{"name":${name},"categoryId":1}`)
      assert.match(message, /^name must be a string of 1 to 255 characters, not all of them white space/)
    })
  }

  const integers: [sent: string, answered: string][] = [
    ['9223372036854775807', '9223372036854775807'],
    ['-9223372036854775808', '-9223372036854775808'],
    ['9007199254740993', '9007199254740993'],
    ['0', '0'],
    ['-0', '0'],
    ['-1', '-1'],
    ['1.0', '1'],
    ['1e2', '100'],
    ['1E+2', '100'],
    ['100e-2', '1'],
    ['922337203685477580.7e1', '9223372036854775807'],
    ['0e999999999999', '0'],
  ]
  for (const [sent, answered] of integers) {
    it(`takes the categoryId ${sent} and answers ${answered}, digit for digit`, async () => {
      const text = await added(`{"name":"Rex","categoryId":${sent}}`)
      assert.match(text, new RegExp(`"categoryId":${answered},`))
      assert.match(await newest(), new RegExp(`"categoryId":${answered},`))
    })
  }

  for (const sent of [
    '9223372036854775808',
    '-9223372036854775809',
    '1.5',
    '1e-1',
    '1e19',
    '1e400',
    '-1e400',
    '1e999999999',
    '0.1e0',
    '"1"',
    '""',
    'null',
    'true',
    '[1]',
    '{}',
  ]) {
    it(`refuses the categoryId ${sent}`, async () => {
      const message = await refused(`{"name":"Rex","categoryId":${sent}}`)
      assert.ok(message.startsWith(`categoryId must be ${CATEGORY_RANGE}, got `), message)
    })
  }

  it('ignores unknown fields and never stores them, an id included', async () => {
    const text = await added(
      '{"id":1,"name":"Rex","categoryId":1,"owner":"me","__proto__":{"status":"sold"},"constructor":1}',
    )
    const pet = JSON.parse(text) as Record<string, unknown>
    assert.notEqual(pet['id'], 1)
    assert.deepEqual(Object.keys(pet).toSorted(), ['categoryId', 'id', 'name', 'status'])
    assert.equal(pet['status'], 'available')
    assert.equal(await newest(), `[${text}]`)
  })

  it('takes no field from a prototype', async () => {
    assert.match(await refused('{"__proto__":{"name":"Rex","categoryId":1}}'), /name is missing/)
  })

  it('gives each animal an id of its own, and a list is an array of Pet', async () => {
    const texts = await Promise.all(Array.from({ length: 30 }, () => added(named('Rex'))))
    const ids = new Set(texts.map((text) => /"id":(\d+)/.exec(text)![1]))
    assert.equal(ids.size, 30)
    const list = (await (await service().call('/pets?limit=30')).json()) as object[]
    assert.ok(Array.isArray(list))
    assert.deepEqual(new Set(list.map((pet) => JSON.stringify(pet))), new Set(texts))
  })
})

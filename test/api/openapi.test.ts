// The service is held to its own OpenAPI document: what it takes, what it refuses, and everything it answers.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { before, describe, it } from 'node:test'
import * as fc from 'fast-check'
import { parseExactJson } from '../../client/src/exact-json.ts'
import { readConfig } from '../../src/config.ts'
import { ERRORS } from '../../src/contract/errors.ts'
import { int64FromText } from '../../src/contract/int64.ts'
import { BODY_LIMIT } from '../../src/contract/limits.ts'
import { FILTER_NAMES } from '../../src/contract/list-query.ts'
import { renderOpenapi } from '../../src/contract/openapi.ts'
import { examplePath, type Operation, OPERATIONS } from '../../src/contract/operations.ts'
import { exampleNewPet, FIELD_NAMES } from '../../src/contract/pets.ts'
import type { PageCall } from '../../src/http/call/call.ts'
import { createOpenapiRoute } from '../../src/http/pages.ts'
import {
  describeOnSqlite,
  describeService,
  restoreExample,
  headerNames,
  type Petstore,
  startPetstore,
} from '../harness/harness.ts'
import {
  assertDescribed,
  codePoint,
  type Document,
  isValid,
  onlyThose,
  operationOf,
  toJson,
  validValues,
} from '../harness/openapi-document.ts'

const RUNS = { numRuns: 15 }

const documentOf = async ({ url }: Petstore) => (await (await fetch(`${url}/openapi.json`)).json()) as Document

/** What may stand in a header field of a real client. */
const headerValue = fc.string({
  unit: fc
    .integer({ min: 0x20, max: 0xff })
    .filter((code) => code < 0x7f || code > 0x9f)
    .map((code) => String.fromCharCode(code)),
})

/**
 * A part of an address. To make fast-check's own `webQueryParameters` takes a second of CPU in one piece, in which the service of this
 * process does nothing: on a busy machine it refused what waited for the disk meanwhile.
 */
const partOfAddress = (plain: string) =>
  fc.string({ unit: fc.oneof(fc.constantFrom(...plain), codePoint.map(encodeURIComponent)), size: 'medium' })
const PLAIN = "abyzABYZ0189-._~!$&'()*+,;=:@"

describe('openapi.json', () => {
  it('is not stale: npm run openapi writes it', () => {
    assert.equal(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8'), renderOpenapi())
  })

  it('has dates of UTC, wherever it is written', () => {
    const zone = process.env['TZ']
    const written = renderOpenapi()
    process.env['TZ'] = 'America/New_York'
    try {
      assert.equal(new Date(Date.UTC(2030, 11, 5)).getDate(), 4)
      assert.equal(renderOpenapi(), written)
      assert.match(written, /to be removed on 5 December 2030/)
    } finally {
      if (zone === undefined) delete process.env['TZ']
      else process.env['TZ'] = zone
    }
  })
})

describeService('Every example of the document', (service) => {
  it('is accepted, alone and together with the others of its operation, in a store without animals', async () => {
    const { paths } = await documentOf(service())
    for (const [path, operations] of Object.entries(paths)) {
      for (const [method, { parameters, requestBody }] of Object.entries(operations)) {
        const all = parameters.flatMap(({ name, in: where, example, examples = {} }) => {
          const values = [
            ...(example === undefined ? [] : [example]),
            ...Object.values(examples).map(({ value }) => value),
          ]
          assert.ok(values.length > 0, `${method} ${path}: ${name} has an example`)
          return values.map((value) => ({ name, where, value: String(value) }))
        })
        const optional = all.filter(({ where }) => where !== 'path')
        for (const sent of [...optional.map((example) => [example]), optional]) {
          const place = all.reduce((filled, { name, value }) => filled.replace(`{${name}}`, value), path)
          const query = new URLSearchParams(sent.filter(({ where }) => where === 'query').map(toPair))
          const headers = Object.fromEntries(sent.filter(({ where }) => where === 'header').map(toPair))
          const response = await service().call(`${place}?${query.toString()}`, {
            method: method.toUpperCase(),
            headers: { ...headers, ...(requestBody && { 'Content-Type': 'application/json' }) },
            ...(requestBody && { body: JSON.stringify(requestBody.content['application/json']!.example) }),
          })
          if (method === 'delete') await restoreExample(service(), { path })
          assert.ok(response.ok, `${method} ${path} with ${JSON.stringify(sent)}: ${await response.text()}`)
        }
      }
    }
  })
})

function toPair({ name, value }: { name: string; value: string }): [string, string] {
  return [name, value]
}

describeOnSqlite('The document', (service) => {
  let document: Document
  before(async () => {
    document = await documentOf(service())
  })
  const described = (id: string, response: Response) => assertDescribed(document, operationOf(document, id), response)
  const newPet = () => document.components.schemas['NewPet']!

  it('is held to: a NewPet that it calls valid is added, and is there by list and get, digit for digit', async () => {
    await fc.assert(
      fc.asyncProperty(validValues(document, newPet()), async (pet) => {
        const { status = 'available', ...given } = pet as Record<string, unknown>
        const stored: Record<string, unknown> = { ...given, status }
        const response = await service().add(toJson(pet))
        const text = await described('createPet', response)
        assert.equal(response.status, 201, text)
        const id = /^\{"id":(\d+),/.exec(text)![1]!
        const inOrder = FIELD_NAMES.filter((field) => field in stored).map((field) => [field, stored[field]])
        assert.equal(text, toJson({ id: BigInt(id), ...Object.fromEntries(inOrder) }))
        assert.equal(await described('getPet', await service().call(`/pets/${id}`)), text)
        assert.equal(await described('listPets', await service().call('/pets?limit=1')), `[${text}]`)
        for (const filter of FILTER_NAMES.filter((name) => stored[name] !== undefined)) {
          const query = new URLSearchParams({ limit: '1', [filter]: String(stored[filter]) })
          assert.equal(await described('listPets', await service().call(`/pets?${query.toString()}`)), `[${text}]`)
        }
      }),
      RUNS,
    )
  })

  it('is held to also with a narrow pattern: without values for it this fails, and does not look for some forever', () => {
    const values = validValues(document, { type: 'string', pattern: '^chip [0-9]{15}$' })
    assert.throws(() => fc.sample(values), /none was text that matches \^chip/)
  })

  it('is held to: a NewPet that it calls invalid is refused with 400, and not stored', async () => {
    const newest = await (await service().call('/pets?limit=1')).text()
    const valid = validValues(document, newPet()) as fc.Arbitrary<Record<string, unknown>>
    const fields = Object.keys(newPet().properties!)
    const mutated = fc.oneof(
      fc
        .tuple(valid, fc.constantFrom(...fields), fc.jsonValue())
        .map(([pet, field, value]) => ({ ...pet, [field]: value })),
      fc.tuple(valid, fc.constantFrom(...newPet().required!)).map(([pet, field]) => ({ ...pet, [field]: undefined })),
      fc.jsonValue(),
    )
    const isInvalid = (value: unknown) => !isValid(document, newPet(), JSON.parse(toJson(value)))
    const invalid = onlyThose<unknown>(mutated, isInvalid, 'an invalid NewPet')
    await fc.assert(
      fc.asyncProperty(invalid, async (value) => {
        const response = await service().add(toJson(value))
        assert.equal(response.status, 400, toJson(value))
        await described('createPet', response)
      }),
      RUNS,
    )
    assert.equal(await (await service().call('/pets?limit=1')).text(), newest)
  })

  it('is held to whatever the bytes of a body and its headers are', async () => {
    const type = fc.oneof(
      fc.constantFrom('application/json', 'application/json; charset=utf-8', 'text/plain'),
      headerValue,
    )
    const body = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc.string().map((text) => Buffer.from(text)),
      fc.json().map((text) => Buffer.from(text)),
    )
    await fc.assert(
      fc.asyncProperty(body, type, fc.option(headerValue), async (bytes, contentType, once) => {
        const headers = {
          'Content-Type': contentType,
          ...(once !== null && { 'Idempotency-Key': once }),
          Origin: 'https://shop.example',
        }
        await described(
          'createPet',
          await service().call('/pets', { method: 'POST', body: Buffer.from(bytes), headers }),
        )
      }),
      RUNS,
    )
  })

  it('is held to: parameters that it calls valid are accepted', async () => {
    const { parameters } = operationOf(document, 'listPets')
    const schemas = Object.fromEntries(
      parameters
        .filter(({ name }) => name !== 'cursor' && name !== 'If-None-Match')
        .map(({ name, schema }) => [name, validValues(document, schema)]),
    )
    await fc.assert(
      fc.asyncProperty(fc.record(schemas, { requiredKeys: [] }), async (query) => {
        const given = Object.entries(query).map(([name, value]) => [name, String(value)])
        const response = await service().call(
          `/pets?${new URLSearchParams(Object.fromEntries(given) as Record<string, string>).toString()}`,
        )
        assert.equal(response.status, 200)
        const pets = parseExactJson(await described('listPets', response)) as Record<string, unknown>[]
        assert.ok(pets.length <= Number(query['limit'] ?? 20))
        for (const name of FILTER_NAMES.filter((filter) => query[filter] !== undefined))
          assert.ok(
            pets.every((pet) => String(pet[name]) === String(query[name])),
            name,
          )
      }),
      RUNS,
    )
  })

  it('is held to: parameters that it calls invalid are refused with 400', async () => {
    const value = fc.oneof(
      fc.string({ unit: codePoint }),
      fc.integer().map(String),
      fc.double().map(String),
      fc.constantFrom('', '0', '101', 'Available', 'null'),
    )
    const { parameters } = operationOf(document, 'listPets')
    await fc.assert(
      fc.asyncProperty(fc.constantFrom('limit', ...FILTER_NAMES), value, async (name, text) => {
        const { schema } = parameters.find((parameter) => parameter.name === name)!
        const isInteger = schema.format === 'int64' ? int64FromText(text) !== undefined : /^[0-9]+$/.test(text)
        const meant = schema.type === 'integer' && isInteger ? Number(text) : text
        const response = await service().call(`/pets?${new URLSearchParams({ [name]: text }).toString()}`)
        assert.equal(response.status, isValid(document, schema, meant) ? 200 : 400, text)
        await described('listPets', response)
      }),
      RUNS,
    )
  })

  it('is held to whatever the query, the id and the conditions are', async () => {
    const query = partOfAddress(`${PLAIN}/?`)
    const id = fc.oneof(
      fc.bigInt().map(String),
      partOfAddress(PLAIN).filter((text) => text !== '' && !/^(?:\.|%2e){1,2}$/i.test(text)),
    )
    await fc.assert(
      fc.asyncProperty(query, id, headerValue, async (search, petId, ifNoneMatch) => {
        const headers = { 'If-None-Match': ifNoneMatch, 'Request-Id': ifNoneMatch }
        await described('listPets', await service().call(`/pets?${search}`, { headers }))
        await described('getPet', await service().call(`/pets/${petId}`, { headers }))
      }),
      RUNS,
    )
  })

  it('has nothing beside a reference, which generators read in different ways', () => {
    const visit = (part: unknown): void => {
      if (typeof part !== 'object' || part === null) return
      if ('$ref' in part) assert.deepEqual(Object.keys(part), ['$ref'])
      Object.values(part).forEach(visit)
    }
    visit(document)
  })

  it('leaves its error codes open to new ones', () => {
    assert.equal(document.components.schemas['Error']!.properties!['code']!.enum, undefined)
  })

  it('is served with an ETag', async () => {
    const ask = (etag: string) => fetch(`${service().url}/openapi.json`, { headers: { 'If-None-Match': etag } })
    const { status, headers } = await ask('"another"')
    assert.equal(status, 200)
    const again = await ask(headers.get('etag')!)
    assert.deepEqual([again.status, again.headers.get('etag'), await again.text()], [304, headers.get('etag'), ''])
  })

  it('names the host that the client uses, and is another for http and https', () => {
    const serve = createOpenapiRoute(readConfig({}, {}))
    for (const protocol of ['http', 'https', 'http']) {
      for (const host of ['localhost', '192.0.2.1']) {
        const { body } = serve({ protocol, host, request: { headers: {} } } as PageCall)
        assert.ok((body as string).includes(`"url": "${protocol}://${host}/v1"`), `${protocol} ${host}`)
      }
    }
  })

  it('leaves no method undescribed: the others answer 405', async () => {
    for (const [path, operations] of Object.entries(document.paths)) {
      for (const method of ['PUT', 'PATCH', 'DELETE', 'POST', 'QUERY', 'PROPFIND']) {
        if (method.toLowerCase() in operations) continue
        const response = await service().call(path.replace(/\{\w+\}/, '1'), { method })
        assert.equal(response.status, 405, `${method} ${path}`)
        assert.deepEqual(Object.keys((await response.json()) as object).toSorted(), ['code', 'message', 'status'])
      }
    }
  })
})

describe('The document in other circumstances', () => {
  it('names the headers that come with each answer: all of them, and no others', async () => {
    let now = Date.UTC(2027, 0, 1)
    await using petstore = await startPetstore({ env: { PETSTORE_RATE_LIMIT: '50/3600' }, clock: () => now })
    const document = await documentOf(petstore)
    const seen = new Map<string, Set<string>>()
    const send = async (operation: Operation, headers = {}, changed: { path?: string; body?: string } = {}) => {
      const { path = examplePath(operation), body = operation.body && JSON.stringify(operation.body.example) } = changed
      const type = body === undefined ? {} : { 'Content-Type': 'application/json' }
      const response = await petstore.call(path, {
        method: operation.method,
        headers: { Origin: 'https://shop.example', ...type, ...headers },
        ...(body !== undefined && { body }),
      })
      await assertDescribed(document, operationOf(document, operation.id), response)
      const name = `${operation.id} ${response.status}`
      seen.set(name, new Set([...(seen.get(name) ?? []), ...headerNames(response.headers)]))
    }
    const [list, create] = ['listPets', 'createPet'].map((id) => OPERATIONS.find((operation) => operation.id === id)!)
    const once = { 'Idempotency-Key': 'a' }

    for (const which of [0, 0, 1] as const) await send(create!, once, { body: JSON.stringify(exampleNewPet(which)) })
    for (const operation of OPERATIONS) {
      for (const headers of [{}, { 'If-None-Match': '*' }, { Authorization: 'Bearer nonsense' }])
        await send(operation, headers)
      if (operation.path.includes('{')) await send(operation, {}, { path: operation.path.replace(/\{\w+\}/, '999999') })
      if (operation.body !== undefined)
        for (const body of ['{', 'x'.repeat(BODY_LIMIT + 1)]) await send(operation, {}, { body })
    }
    await send(create!)
    for (const headers of [{}, { 'If-None-Match': '*' }]) await send(list!, headers, { path: '/pets?limit=1' })
    await send(list!, {}, { path: '/pets?limit=0' })
    for (let count = 0; count < 50; count += 1) await petstore.call('/pets')
    for (const operation of OPERATIONS) await send(operation)
    now = Date.UTC(2031, 0, 1)
    for (const operation of OPERATIONS.filter(({ deprecation }) => deprecation !== undefined)) await send(operation)

    const expected = OPERATIONS.flatMap(({ id, method, success, refusals }) => {
      const statuses = [
        success.status,
        ...(method === 'GET' ? [304] : []),
        ...refusals.map((code) => ERRORS[code].status),
      ]
      return [...statuses, 401, 429].map((status) => `${id} ${status}`)
    })
    // Only a create that waits for another with its key is answered 409 (test/store/many-instances.test.ts).
    const provoked = new Set(expected).difference(new Set(['createPet 409']))
    assert.deepEqual([...seen.keys()].toSorted(), [...provoked].toSorted())
    for (const [name, names] of seen) {
      const [id = '', status = ''] = name.split(' ')
      const documented = Object.keys(operationOf(document, id).responses[status]!.headers).map((header) =>
        header.toLowerCase(),
      )
      assert.deepEqual([...names].toSorted(), documented.toSorted(), name)
    }
  })
})

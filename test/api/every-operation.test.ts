// What every operation of the table promises: a write can be seen by a read, and what can't be done is refused as documented. Bodies
// and values are made from the schemas, and what was written is looked for in the list of its own resource.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { parseExactJson } from '../../client/src/exact-json.ts'
import { RawConnection } from '../harness/connections/raw-http.ts'
import { type ErrorCode, ERRORS } from '../../src/contract/errors.ts'
import { INT64_MAX } from '../../src/contract/int64.ts'
import { BODY_LIMIT } from '../../src/contract/limits.ts'
import { type Operation, OPERATIONS } from '../../src/contract/operations.ts'
import { collectionOf, describeService, expectError, operationAt, type Petstore } from '../harness/harness.ts'
import { hostileValues, isAllowed, type JsonSchema, toJson } from '../harness/openapi-document.ts'

type Fields = Record<string, unknown>

const WITH_BODY = OPERATIONS.filter(({ body }) => body !== undefined)
const fieldsOf = ({ body }: Operation) => (body!.schema as JsonSchema).properties!
const isOfOne = ({ path }: Operation) => path.includes('{')

/** Adds what differs from the example of a body in every field; returns its id. */
async function prepare(service: Petstore, operation: Operation, example: Fields): Promise<bigint> {
  const create = operationAt(collectionOf(operation), 'POST')
  const differing = Object.entries(fieldsOf(create)).map(([name, { examples = [] }]) => [
    name,
    examples.find((value) => value !== example[name]),
  ])
  const response = await send(service, create, 0n, JSON.stringify(Object.fromEntries(differing)))
  const text = await response.text()
  assert.equal(response.status, create.success.status, text)
  return (parseExactJson(text) as { id: bigint }).id
}

/** What a client sees in the list of an operation's resource, the newest first. */
async function list(service: Petstore, operation: Operation): Promise<Fields[]> {
  const { path } = operationAt(collectionOf(operation), 'GET')
  return parseExactJson(await (await service.call(`${path}?limit=100`)).text()) as Fields[]
}

const stored = async (service: Petstore, operation: Operation, id: unknown) =>
  (await list(service, operation)).find((each) => each['id'] === id)

const exact = (value: unknown) => parseExactJson(toJson(value)) as Fields

/** The path of an operation on what has this id. */
const pathOf = ({ path }: Operation, id: bigint) => path.replace(/\{\w+\}/, String(id))

const send = (
  service: Petstore,
  operation: Operation,
  id: bigint,
  body?: string,
  headers: Record<string, string> = {},
) =>
  service.call(pathOf(operation, id), {
    method: operation.method,
    headers: { ...(body !== undefined && { 'Content-Type': 'application/json' }), ...headers },
    ...(body !== undefined && { body }),
  })

describeService('Every operation', (service) => {
  for (const operation of OPERATIONS.filter(({ method }) => method !== 'GET')) {
    it(`that writes can be seen by a read: ${operation.id}`, async () => {
      const example = exact(operation.body?.example ?? {})
      const id = await prepare(service(), operation, (operation.body?.example ?? {}) as Fields)
      const before = await list(service(), operation)
      const response = await send(service(), operation, id, operation.body && JSON.stringify(operation.body.example))
      const text = await response.text()
      assert.equal(response.status, operation.success.status, text)
      const after = await list(service(), operation)
      assert.notDeepEqual(after, before)
      if (operation.method === 'DELETE') return assert.ok(after.every((each) => each['id'] !== id))
      const answer = response.status === 204 ? { id } : (parseExactJson(text) as Fields)
      const written = after.find((each) => each['id'] === answer['id'])
      assert.deepEqual({ ...written, ...example, ...answer }, written)
      if (!isOfOne(operation)) return undefined
      const untouched = before.find((each) => each['id'] === id)
      assert.deepEqual({ ...untouched, ...example }, written, 'what is not in the body stays')
    })
  }

  for (const operation of OPERATIONS) {
    it(`may be repeated as its entry says: ${operation.id}`, async () => {
      const { repeat, method, parameters, body } = operation
      assert.equal(repeat === 'safe', method === 'GET')
      assert.equal(
        repeat === 'with key',
        parameters.some(({ name }) => name === 'Idempotency-Key'),
      )
      if (repeat === 'never') return
      const id = await prepare(service(), operation, (body?.example ?? {}) as Fields)
      const before = await list(service(), operation)
      const key = repeat === 'with key' ? { 'Idempotency-Key': operation.id } : {}
      const lists = []
      for (const _time of ['first', 'second']) {
        await (await send(service(), operation, id, body && JSON.stringify(body.example), key)).text()
        lists.push(await list(service(), operation))
      }
      assert.deepEqual(lists[1], lists[0])
      if (repeat === 'safe') assert.deepEqual(lists[0], before)
      else assert.notDeepEqual(lists[0], before)
    })
  }

  for (const operation of OPERATIONS.filter(isOfOne)) {
    it(`on what is not there is refused, as documented: ${operation.id}`, async () => {
      const code = operation.refusals.find((each) => ERRORS[each].status === 404)
      assert.ok(code, 'its entry has an error with the status 404')
      await expectError(
        await send(service(), operation, INT64_MAX, operation.body && JSON.stringify(operation.body.example)),
        code,
      )
    })
  }

  for (const operation of WITH_BODY) {
    const { example, invalid } = operation.body!
    const valid = JSON.stringify(example)
    const REFUSED: Record<string, { body: string; type?: string; code: ErrorCode }> = {
      'none at all': { body: '', code: 'missing_body' },
      'of another type': { body: valid, type: 'text/plain', code: 'unsupported_content_type' },
      'that is not JSON': { body: `${valid}}`, code: 'invalid_json' },
      'that is no object': { body: '[]', code: invalid },
      'that is too large': { body: valid + ' '.repeat(BODY_LIMIT), code: 'body_too_large' },
    }
    for (const [which, { body, type = 'application/json', code }] of Object.entries(REFUSED)) {
      it(`refuses a body ${which}: ${operation.id}`, async () => {
        const id = await prepare(service(), operation, {})
        const before = await list(service(), operation)
        const headers = { 'Content-Type': type }
        const response = await service().call(pathOf(operation, id), { method: operation.method, headers, body })
        await expectError(response, code)
        assert.deepEqual(await list(service(), operation), before)
      })
    }

    for (const field of [undefined, ...Object.keys(example as object)]) {
      it(`changes nothing that its body does not name, with ${field ?? 'nothing'} in it: ${operation.id}`, async () => {
        const sent = field === undefined ? {} : { [field]: (example as Fields)[field] }
        const id = await prepare(service(), operation, sent)
        const before = await stored(service(), operation, id)
        const response = await send(service(), operation, id, JSON.stringify(sent))
        if (!response.ok) await expectError(response, invalid)
        const isChanged = response.ok && isOfOne(operation)
        assert.deepEqual(await stored(service(), operation, id), isChanged ? { ...before, ...exact(sent) } : before)
      })
    }

    for (const [field, schema] of Object.entries(fieldsOf(operation))) {
      it(`keeps a value that its schema allows as it is, and refuses any other, by name: ${field} of ${operation.id}`, async () => {
        const { type, examples = [] } = schema
        assert.ok(examples.length > 1 && examples[0] !== examples[1], `${field} has two examples that differ`)
        for (const bad of type === 'string' ? ['', 'a\0b', 'x'.repeat(9000)] : [])
          assert.ok(!isAllowed(schema, bad), `the schema of ${field} allows ${JSON.stringify(bad.slice(0, 9))}`)
        const id = await prepare(service(), operation, {})
        for (const value of [...examples, ...hostileValues(schema)]) {
          const before = await list(service(), operation)
          const told = `${field}: ${toJson(value).slice(0, 99)}`
          const response = await send(service(), operation, id, toJson({ ...(example as object), [field]: value }))
          if (!isAllowed(schema, value)) {
            const message = await expectError(response, invalid)
            assert.match(message, new RegExp(`^${field} must be .*, got `), told)
            assert.deepEqual(await list(service(), operation), before, told)
            continue
          }
          const text = await response.text()
          assert.equal(response.status, operation.success.status, `${told}: ${text}`)
          const changed = response.status === 204 ? id : (parseExactJson(text) as Fields)['id']
          assert.deepEqual((await stored(service(), operation, changed))?.[field], exact({ value })['value'], told)
        }
      })
    }

    it(`asks for the body only after the checks that need none: ${operation.id}`, async () => {
      const id = await prepare(service(), operation, {})
      const connection = new RawConnection(service().url)
      const head = (type: string) =>
        `${operation.method} /v1${pathOf(operation, id)} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${service().key}\r\n` +
        `Content-Type: ${type}\r\nExpect: 100-continue\r\nContent-Length: ${valid.length}\r\n\r\n`
      connection.send(head('application/json'))
      assert.equal((await connection.answer()).status, 100)
      connection.send(valid)
      assert.equal((await connection.answer()).status, operation.success.status)
      connection.send(head('text/plain'))
      assert.equal((await connection.answer()).status, 400)
      connection.socket.destroy()
    })
  }
})

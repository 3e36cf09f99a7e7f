// What every operation of the table promises: a write can be seen by a read, and what can't be done is refused as documented.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { asJson, otherPet, samplePet } from '../../assurance/harness/sample-pet.ts'
import { RawConnection } from '../../assurance/harness/raw-http.ts'
import type { ErrorCode } from '../../src/contract/errors.ts'
import { INT64_MAX } from '../../src/contract/int64.ts'
import { BODY_LIMIT } from '../../src/contract/limits.ts'
import { type Operation, OPERATIONS } from '../../src/contract/operations.ts'
import type { NewPet } from '../../src/contract/pets.ts'
import { describeService, expectError, type Petstore } from '../harness/harness.ts'

type Fields = Record<string, unknown>

/** Adds an animal that differs from the example of a body in every field. */
async function prepare({ store }: Petstore, example: Fields): Promise<bigint> {
  const differing = Object.entries(asJson(samplePet)).map(([name, value]) => [
    name,
    (value === example[name] ? otherPet : samplePet)[name as keyof NewPet],
  ])
  const created = await store.pets.create(Object.fromEntries(differing))
  assert.ok('pet' in created)
  return created.pet.id
}

/** The path of an operation on this animal. */
const pathOf = ({ path }: Operation, id: bigint) => path.replace('{petId}', String(id))

const send = (service: Petstore, operation: Operation, id: bigint, body: string | undefined) =>
  service.call(pathOf(operation, id), {
    method: operation.method,
    ...(body !== undefined && { body, headers: { 'Content-Type': 'application/json' } }),
  })

describeService('Every operation', (service) => {
  for (const operation of OPERATIONS.filter(({ method }) => method !== 'GET')) {
    it(`that writes can be seen by a read: ${operation.id}`, async () => {
      const example = (operation.body?.example ?? {}) as Fields
      const id = await prepare(service(), example)
      const list = async () => (await (await service().call('/pets?limit=100')).json()) as Fields[]
      const before = await list()
      const response = await send(service(), operation, id, operation.body && JSON.stringify(example))
      assert.equal(response.status, operation.success.status, await response.clone().text())
      const after = await list()
      assert.notDeepEqual(after, before)
      if (operation.method === 'DELETE') return assert.ok(after.every((pet) => pet['id'] !== Number(id)))
      const answer = response.status === 204 ? { id: Number(id) } : ((await response.json()) as Fields)
      const stored = after.find((pet) => pet['id'] === answer['id'])
      assert.deepEqual({ ...stored, ...example, ...answer }, stored)
      if (operation.path.includes('{petId}')) {
        const untouched = before.find((pet) => pet['id'] === Number(id))
        assert.deepEqual({ ...untouched, ...example }, stored, 'what is not in the body stays')
      }
    })
  }

  for (const operation of OPERATIONS.filter(({ path }) => path.includes('{petId}'))) {
    it(`on an animal that is not there is refused, as documented: ${operation.id}`, async () => {
      const body = operation.body && JSON.stringify(operation.body.example)
      await expectError(await send(service(), operation, INT64_MAX, body), 'pet_not_found')
    })
  }

  for (const operation of OPERATIONS.filter(({ body }) => body !== undefined)) {
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
        const id = await prepare(service(), {})
        const before = await service().store.pets.list({ limit: 100 })
        const headers = { 'Content-Type': type }
        const response = await service().call(pathOf(operation, id), { method: operation.method, headers, body })
        await expectError(response, code)
        assert.deepEqual(await service().store.pets.list({ limit: 100 }), before)
      })
    }

    for (const field of [undefined, ...Object.keys(example as object)]) {
      it(`changes nothing that its body does not name, with ${field ?? 'nothing'} in it: ${operation.id}`, async () => {
        const sent = field === undefined ? {} : { [field]: (example as Fields)[field] }
        const id = await prepare(service(), sent)
        const stored = async () => asJson((await service().store.pets.get(id))!)
        const before = await stored()
        const response = await send(service(), operation, id, JSON.stringify(sent))
        if (!response.ok) await expectError(response, invalid)
        const isChanged = response.ok && operation.path.includes('{petId}')
        assert.deepEqual(await stored(), isChanged ? { ...before, ...sent } : before)
      })
    }

    for (const field of Object.keys(example as object)) {
      it(`refuses a body with a bad ${field}: ${operation.id}`, async () => {
        const id = await prepare(service(), {})
        const response = await send(service(), operation, id, JSON.stringify({ ...(example as object), [field]: [] }))
        assert.match(await expectError(response, invalid), new RegExp(`^${field} must be .*, got an array\\.$`))
      })
    }

    it(`asks for the body only after the checks that need none: ${operation.id}`, async () => {
      const id = await prepare(service(), {})
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

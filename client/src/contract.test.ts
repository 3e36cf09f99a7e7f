// The client and the contract agree: types, operations, error codes.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { ERRORS } from '../../src/contract/errors.ts'
import { renderContract } from '../make-contract.ts'
import { OPERATIONS } from './contract.ts'
import {
  AuthenticationError,
  errorOfStatus,
  InvalidRequestError,
  NotFoundError,
  RateLimitError,
  ServerError,
} from './errors.ts'
import { Petstore } from './petstore.ts'

const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8')

describe("The client's contract", () => {
  it('is not stale: npm run openapi writes it', () => {
    assert.equal(read('contract.ts'), renderContract())
  })

  it('is not written for an integer whose format is unknown: it would have the type of another', () => {
    const document = read('../../openapi.json')
    const unknown = document.replaceAll(/("type": "integer"),\s*"format": "int64"/g, '$1')
    assert.throws(() => renderContract(unknown), /can't read the field id, integer of format undefined: .* int64/)
  })

  it('has a method for every operation, and no other', () => {
    const methods = Object.getOwnPropertyNames(Petstore.prototype).filter((name) => name !== 'constructor')
    assert.deepEqual(methods.toSorted(), Object.keys(OPERATIONS).toSorted())
  })

  it('marks the methods of deprecated operations, and no other, with the date of their removal', () => {
    const { paths } = JSON.parse(read('../../openapi.json')) as {
      paths: Record<string, Record<string, { operationId: string; deprecated?: boolean; description: string }>>
    }
    const operations = Object.values(paths).flatMap((methods) => Object.values(methods))
    const marked = [...read('petstore.ts').matchAll(/@deprecated ([^\n]*)\n\s*\*\/\s*(?:async )?(\w+)\(/g)]
    assert.deepEqual(
      marked.map(([, , name]) => name),
      operations.filter(({ deprecated }) => deprecated === true).map(({ operationId }) => operationId),
    )
    for (const [, text = '', name] of marked) {
      const { description } = operations.find(({ operationId }) => operationId === name)!
      const [date = 'no date'] = /\d+ \w+ \d{4}/.exec(text) ?? []
      assert.ok(description.includes(date), `${name}: ${date}`)
    }
  })

  it('gives every error of the service the class of its status', () => {
    const CLASSES = { 401: AuthenticationError, 404: NotFoundError, 429: RateLimitError } as Record<number, unknown>
    for (const [code, { status }] of Object.entries(ERRORS)) {
      const error = errorOfStatus(status, { code, message: 'It failed.' })
      assert.equal(error.constructor, CLASSES[status] ?? (status < 500 ? InvalidRequestError : ServerError), code)
      assert.deepEqual([error.code, error.status, error.name], [code, status, error.constructor.name])
    }
  })
})

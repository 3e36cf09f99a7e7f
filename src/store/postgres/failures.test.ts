// What an operator reads of a failure.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { explain } from './failures.ts'

it('A host with several addresses that all fail is explained address by address', () => {
  // What Node rejects with then has no message of its own.
  const tried = ['::1', '127.0.0.1'].map((address) => new Error(`connect ECONNREFUSED ${address}:1`))
  assert.equal(explain(new AggregateError(tried)), 'connect ECONNREFUSED ::1:1; connect ECONNREFUSED 127.0.0.1:1')
})

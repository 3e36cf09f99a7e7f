// How errors of PostgreSQL are classified and explained to the operator.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import postgres from 'postgres'
import { StoreUnavailable } from '../store.ts'
import { asStoreFailure, explain } from './failures.ts'

it('A host with several addresses that all fail is explained address by address', () => {
  // Node then rejects with an AggregateError that has no message.
  const tried = ['::1', '127.0.0.1'].map((address) => new Error(`connect ECONNREFUSED ${address}:1`))
  assert.equal(explain(new AggregateError(tried)), 'connect ECONNREFUSED ::1:1; connect ECONNREFUSED 127.0.0.1:1')
})

it('A worker that Citus has lost is an unavailable database; another internal error of the server is a bug', () => {
  const internal = (message: string) =>
    Object.assign(new postgres.PostgresError(message), { severity: 'ERROR', code: 'XX000', message })
  assert.ok(
    asStoreFailure(internal('failure on connection marked as essential: worker-1:5432')) instanceof StoreUnavailable,
  )
  assert.ok(!(asStoreFailure(internal('cache lookup failed for type 0')) instanceof StoreUnavailable))
})

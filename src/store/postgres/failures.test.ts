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

it('A connection that breaks is an unavailable database; a mistake of this program is a bug', () => {
  const withCode = (code: string) => Object.assign(new Error('failed'), { code })
  for (const code of ['ECONNRESET', 'EPIPE', 'CONNECTION_CLOSED', 'CONNECT_TIMEOUT'])
    assert.ok(asStoreFailure(withCode(code)) instanceof StoreUnavailable, code)
  for (const bug of [
    withCode('ERR_INVALID_ARG_TYPE'),
    withCode('RECONNECT'),
    new TypeError('failed'),
    { code: 'EPIPE' },
  ])
    assert.equal(asStoreFailure(bug), bug)
})

it('The operator is told what failed, without the name of the system call', () => {
  assert.equal(explain(new Error('write CONNECTION_CLOSED db:5432')), 'CONNECTION_CLOSED db:5432')
  assert.equal(explain(new Error('cannot write to db:5432')), 'cannot write to db:5432')
})

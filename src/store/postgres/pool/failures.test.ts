// How errors of PostgreSQL are classified and explained to the operator.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { serverSays } from '../../../../test/harness/connections/fake-server.ts'
import { StoreUnavailable } from '../../store.ts'
import { asStoreFailure, breaksConnection, explain, isBadRow, wasRefused, wasRolledBack } from './failures.ts'

it('A connection is used again after an error of a statement, unless the server ends it or no longer takes writes', () => {
  const unusable = [serverSays('FATAL', '57P01'), serverSays('ERROR', '25006'), new Error('read ECONNRESET')]
  for (const error of unusable) assert.deepEqual([breaksConnection(error), wasRefused(error)], [true, false])
  const refused = serverSays('ERROR', '23505')
  assert.deepEqual([breaksConnection(refused), wasRefused(refused)], [false, true])
})

it('The state of the database makes it unavailable; what it says about a statement is a bug', () => {
  for (const code of [
    '08006',
    '22P05',
    '23502',
    '25006',
    '28P01',
    '3D000',
    '40001',
    '42703',
    '42P01',
    '42P10',
    '53300',
    '55P03',
    '57P01',
    '58030',
  ])
    assert.ok(asStoreFailure(serverSays('ERROR', code)) instanceof StoreUnavailable, code)
  for (const code of ['22003', '23505', '42601', '25001', '55000', 'P0001', 'XX000']) {
    const bug = serverSays('ERROR', code)
    assert.equal(asStoreFailure(bug), bug)
  }
  const unavailable = new StoreUnavailable('busy')
  assert.equal(asStoreFailure(unavailable), unavailable)
})

it('Creates that shared a statement are sent alone after an error of one row, damage included', () => {
  const ofRow = ['22003', '22P05', '23502', '23514', 'P0001', '2200H', '42703', '42P01', '53100'].filter((code) =>
    isBadRow(asStoreFailure(serverSays('ERROR', code))),
  )
  assert.deepEqual(ofRow, ['22003', '22P05', '23502', '23514', 'P0001'])
})

it('A write is safe to repeat where the server rolled it back, and not where its outcome is unknown', () => {
  const rolledBack = ['40001', '40P01', '40003', '40002', '08006', '57014', '23505'].filter((code) =>
    wasRolledBack(serverSays('ERROR', code)),
  )
  assert.deepEqual(rolledBack, ['40001', '40P01'])
})

it('A host with several addresses that all fail is explained address by address', () => {
  // Node then rejects with an AggregateError that has no message.
  const tried = ['::1', '127.0.0.1'].map((address) => new Error(`connect ECONNREFUSED ${address}:1`))
  assert.equal(explain(new AggregateError(tried)), 'connect ECONNREFUSED ::1:1; connect ECONNREFUSED 127.0.0.1:1')
})

it('A node that Citus has lost is an unavailable database, a bad row of several is one; another internal error of the server is a bug', () => {
  const internal = (message: string, file: string) => Object.assign(serverSays('ERROR', 'XX000'), { message, file })
  const meanings = (error: Error) => [asStoreFailure(error) instanceof StoreUnavailable, isBadRow(error)]
  for (const [message, file] of [
    ['failure on connection marked as essential: worker-1:5432', 'remote_transaction.c'],
    ['server closed the connection unexpectedly', 'remote_commands.c'],
    ['terminating connection due to administrator command', 'multi_copy.c'],
  ] as const)
    assert.deepEqual(meanings(internal(message, file)), [true, false], message)
  assert.ok(wasRolledBack(internal('could not find valid entry for shard 102008', 'metadata_cache.c')))
  const bad = internal('new row for relation "pets_102008" violates check constraint "x"', 'multi_copy.c')
  assert.deepEqual(meanings(bad), [false, true])
  assert.deepEqual(meanings(internal('cache lookup failed for type 0', 'lsyscache.c')), [false, false])
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
  // PgBouncer's answer to a setting that it does not know.
  const unsupported = Object.assign(serverSays('FATAL', '08P01'), { message: 'unsupported startup parameter: x' })
  assert.match(explain(unsupported), /parameter: x \(behind PgBouncer, add pgbouncer=true to the address\)$/)
  assert.equal(explain(new Error(explain(unsupported))), explain(unsupported), 'once')
})

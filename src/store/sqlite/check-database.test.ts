// When `petstore doctor` warns of low disk space; test/doctor.test.ts has its other checks.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { spaceCheck } from './check-database.ts'

it('disk space is a problem below 100 MiB, and worth a warning when a copy of the database does not fit', () => {
  const mebibyte = 1024 * 1024
  assert.equal(spaceCheck(100 * mebibyte - 1, mebibyte).state, 'problem')
  assert.equal(spaceCheck(100 * mebibyte, mebibyte).state, 'ok')
  assert.equal(spaceCheck(200 * mebibyte, 200 * mebibyte + 1).state, 'warning')
})

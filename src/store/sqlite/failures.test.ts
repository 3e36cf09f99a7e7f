// Which errors of SQLite mean that the database is unavailable, and which are bugs.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { StoreUnavailable } from '../store.ts'
import { asStoreFailure, isBusy, isFailedSync, isFull } from './failures.ts'

const failure = (errcode: number) => Object.assign(new Error('said by SQLite'), { code: 'ERR_SQLITE_ERROR', errcode })
/** An extended code has its primary code in the lowest byte. */
const extended = (code: number, detail: number) => code | (detail << 8)

describe('an error of SQLite', () => {
  const unavailable: Record<string, number> = {
    'a lock': 5,
    'a lock of this process': 6,
    'a read-only file': 8,
    'a disk that fails': 10,
    'a damaged file': 11,
    'a full disk': 13,
    'a file that cannot be opened': 14,
    'a file that is no database': 26,
  }
  for (const [what, code] of Object.entries(unavailable)) {
    it(`means an unavailable database, whatever its details are: ${what}`, () => {
      for (const error of [failure(code), failure(extended(code, 3))]) {
        const failed = asStoreFailure(error)
        assert.ok(failed instanceof StoreUnavailable)
        assert.match(failed.message, /^[a-z].* \(SQLite: said by SQLite\)$/)
        assert.equal(failed.cause, error)
      }
    })
  }

  it('is a bug otherwise, except for a store that is closed', () => {
    for (const error of [failure(1), failure(19), failure(extended(19, 8)), new TypeError('no'), undefined])
      assert.equal(asStoreFailure(error), error)
    const closed = Object.assign(new Error('database is not open'), { code: 'ERR_INVALID_STATE' })
    assert.ok(asStoreFailure(closed) instanceof StoreUnavailable)
  })

  it('is worth a retry if it is a lock, and fatal if it is a failed sync', () => {
    const busy = [5, extended(5, 1), extended(5, 2)]
    const sync = extended(10, 4)
    const others = [6, 10, extended(10, 5), 13]
    assert.deepEqual(
      [...busy, sync, ...others].filter((code) => isBusy(failure(code))),
      busy,
    )
    assert.deepEqual(
      [...busy, sync, ...others].filter((code) => isFailedSync(failure(code))),
      [sync],
    )
  })

  it('is that of a full disk also where there is no room for the -shm file, and where Node.js reports it', () => {
    const full = [failure(13), failure(extended(10, 19)), Object.assign(new Error('write'), { code: 'ENOSPC' })]
    const others = [failure(10), failure(extended(10, 4)), failure(5), new Error('write'), undefined]
    assert.deepEqual([...full, ...others].filter(isFull), full)
  })
})

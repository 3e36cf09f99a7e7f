import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { type ErrorFields, PetstoreError } from './errors.ts'
import { parseRetryAfter, retryDelay } from './retry.ts'

const failed = (fields: Partial<ErrorFields>, attempt = 1, timeLeft = 600_000) => ({
  error: new PetstoreError({ code: 'unexpected_response', message: 'It failed.', ...fields }),
  isRepeatable: true,
  attempt,
  maxRetries: 10,
  timeLeft,
})

describe('Retries', () => {
  const cases: [Partial<ErrorFields>, boolean][] = [
    [{ code: 'network_error' }, true],
    [{ code: 'malformed_response', status: 200 }, true],
    [{ code: 'idempotency_in_progress', status: 409 }, true],
    ...[408, 429, 500, 502, 503, 504].map((status): [Partial<ErrorFields>, boolean] => [{ status }, true]),
    ...[200, 302, 400, 401, 403, 404, 405, 409, 410, 413, 422, 431, 501].map(
      (status): [Partial<ErrorFields>, boolean] => [{ status }, false],
    ),
    [{ code: 'timeout' }, false],
  ]
  for (const [fields, repeated] of cases) {
    it(`${repeated ? 'follow' : 'do not follow'} ${JSON.stringify(fields)}`, () => {
      assert.equal(retryDelay(failed(fields)) !== undefined, repeated)
    })
  }

  it('follow only a 429 if the request must not be carried out twice', () => {
    const followed = cases.filter(([fields]) => retryDelay({ ...failed(fields), isRepeatable: false }) !== undefined)
    assert.deepEqual(followed, [[{ status: 429 }, true]])
  })

  it('end after maxRetries', () => {
    assert.ok(retryDelay(failed({ status: 503 }, 10)))
    assert.equal(retryDelay(failed({ status: 503 }, 11)), undefined)
  })

  it('wait twice as long each time, up to 8 s, half of it random', () => {
    const delays = (random: number) =>
      [1, 2, 3, 4, 5, 6, 9].map((attempt) => retryDelay(failed({ status: 503 }, attempt), () => random))
    assert.deepEqual(delays(1), [500, 1000, 2000, 4000, 8000, 8000, 8000])
    assert.deepEqual(delays(0), [250, 500, 1000, 2000, 4000, 4000, 4000])
  })

  it('never come before the Retry-After, and not all at the same moment after it', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 60_000 }),
        fc.integer({ min: 1, max: 10 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (retryAfter, attempt, random) => {
          assert.equal(
            retryDelay(failed({ status: 429, retryAfter }, attempt), () => random),
            retryAfter + 500 * random,
          )
        },
      ),
    )
  })

  it('are given up at once if the Retry-After is over a minute, or the wait would outlast the timeout', () => {
    assert.equal(retryDelay(failed({ status: 429, retryAfter: 60_001 })), undefined)
    assert.equal(retryDelay(failed({ status: 429, retryAfter: 5000 }, 1, 5000)), undefined)
    assert.equal(retryDelay(failed({ status: 503 }, 1, 200)), undefined)
  })
})

describe('A Retry-After', () => {
  const now = Date.UTC(2026, 10, 15, 12)
  const cases: [string | null, number | undefined][] = [
    ['0', 0],
    ['7', 7000],
    ['Sun, 15 Nov 2026 12:00:30 GMT', 30_000],
    ['Sun, 15 Nov 2026 11:59:00 GMT', 0],
    [null, undefined],
    ['', undefined],
    ['-5', undefined],
    ['1.5', undefined],
    ['1e3', undefined],
    ['0x10', undefined],
    ['99999999999999999999', undefined],
    ['soon', undefined],
    ['5000 apples', undefined],
    ['Sun, 45 Nov 2026 12:00:30 GMT', undefined],
    ['2026-11-15T12:00:30Z', undefined],
  ]
  for (const [header, milliseconds] of cases) {
    it(`of ${JSON.stringify(header)} is ${milliseconds === undefined ? 'ignored' : `${milliseconds} ms`}`, () => {
      assert.equal(parseRetryAfter(header, now), milliseconds)
    })
  }
})

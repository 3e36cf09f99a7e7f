import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { readConfig } from '../config.ts'
import { createSharedLimits } from './shared.ts'

describe('The rate limit that processes share', () => {
  it('ends its windows by the monotonic clock: a wall clock that is set lengthens and shortens none', async () => {
    const config = readConfig({}, { PETSTORE_RATE_LIMIT: '1/60', PETSTORE_WORKERS: '2' })
    let now = 300_000
    const { lease } = createSharedLimits(config, () => now)
    const granted = async () => (await lease!('someone', 1)).granted
    assert.deepEqual([await granted(), await granted()], [1, 0])
    now += 59_999
    assert.equal(await granted(), 0)
    now += 1
    assert.deepEqual([await granted(), await granted()], [1, 0])
  })
})

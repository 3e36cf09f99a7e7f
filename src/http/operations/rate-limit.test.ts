// The allowance of an account in a window of time.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { Refusal } from '../../contract/errors.ts'
import type { OperationCall } from '../call/call.ts'
import { createRateLimit } from './rate-limit.ts'

/** The step reads the caller and leaves headers, nothing else. */
const callOf = (accountId: string) => ({ caller: { accountId } }) as unknown as OperationCall

describe('The rate step', () => {
  it('lets through at most the allowance of each account in each window, and exactly that under load', () => {
    const call = fc.record({ account: fc.constantFrom('a', 'b', 'c'), after: fc.integer({ min: 0, max: 3000 }) })
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 5 }),
        fc.integer({ min: 1, max: 10 }),
        fc.array(call, { maxLength: 200 }),
        (requests, seconds, calls) => {
          let now = 1_790_000_000_000
          const step = createRateLimit({ requests, seconds }, () => now)
          const counts = new Map<string, number>()
          for (const { account, after } of calls) {
            now += after
            const slot = `${account} ${Math.floor(now / (seconds * 1000))}`
            const count = (counts.get(slot) ?? 0) + 1
            counts.set(slot, count)
            const verdict = step(callOf(account))
            assert.ok(!(verdict instanceof Promise))
            assert.equal(verdict instanceof Refusal, count > requests)
          }
        },
      ),
    )
  })

  it('refuses nobody below the limit at the end of a window, however long the step itself takes', () => {
    const limit = { requests: 300, seconds: 1 }
    const step = fc.constantFrom(0.01, 0.01, 3, 30)
    const property = fc.property(fc.array(step, { minLength: 7 }), (steps) => {
      // Time passes at each reading, as it does in a process that has to wait between two lines.
      let [now, readings] = [0, 0]
      const monotonic = () => (now += steps[readings++ % steps.length]!)
      const rate = createRateLimit(limit, monotonic)
      for (let count = 1; count <= limit.requests; count++) {
        const call = callOf('a')
        assert.equal(rate(call), undefined, `request ${count}`)
        assert.match(call.answerHeaders![1]!, /;t=1$/)
      }
    })
    fc.assert(property, { numRuns: 200 })
  })
})

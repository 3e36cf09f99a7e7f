// The allowance of an account in a window of time.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { Refusal } from '../contract/errors.ts'
import type { RateLimit } from '../config.ts'
import type { OperationCall } from './call.ts'
import { createRateLimit, createRateWindow } from './rate-limit.ts'

/** The step reads the caller and leaves headers, nothing else. */
const callOf = (accountId: string) => ({ caller: { accountId } }) as unknown as OperationCall

type RateWindow = ReturnType<typeof createRateWindow>

/** The step of a process that leases from a window. `deliver` carries each grant to it. */
const stepOf = (
  limit: RateLimit,
  monotonic: () => number,
  window: RateWindow,
  deliver = async (grant: ReturnType<RateWindow>) => grant,
) => createRateLimit(limit, monotonic, async (...asked) => deliver(window(...asked)))

const AT_START = () => 0

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

  it('lets through no more where a lease takes so long that its window ends on the way', async () => {
    const limit = { requests: 2, seconds: 1 }
    let now = 10_000
    const monotonic = () => now
    const window = createRateWindow(limit, monotonic)
    // A process whose leases arrive late, and one whose leases do not: they share the window.
    const late = stepOf(limit, monotonic, window, async (grant) => {
      await Promise.resolve()
      if (now < 11_000) now = 11_000
      return grant
    })
    const prompt = stepOf(limit, monotonic, window)
    now = 10_900
    const refused: boolean[] = []
    for (const step of [late, prompt, prompt, late]) refused.push((await step(callOf('a'))) instanceof Refusal)
    assert.deepEqual(refused, [false, false, true, true])
  })

  it('refuses nobody below the limit in a burst whose requests all wait for leases', async () => {
    const limit = { requests: 10, seconds: 60 }
    const step = stepOf(limit, AT_START, createRateWindow(limit, AT_START))
    const accounts = Array.from({ length: 21 }, (_, index) => (index % 2 === 0 ? 'a' : 'b'))
    const verdicts = await Promise.all(accounts.map(async (account) => step(callOf(account))))
    assert.deepEqual(
      accounts.filter((_, index) => verdicts[index] instanceof Refusal),
      ['a'],
    )
  })

  it('refuses nobody below the limit at the end of a window, however long the step itself takes', async () => {
    const limit = { requests: 300, seconds: 1 }
    const step = fc.constantFrom(0.01, 0.01, 3, 30)
    const property = fc.asyncProperty(fc.boolean(), fc.array(step, { minLength: 7 }), async (isShared, steps) => {
      // Time passes at each reading, as it does in a process that has to wait between two lines.
      let [now, readings] = [0, 0]
      const monotonic = () => (now += steps[readings++ % steps.length]!)
      const window = createRateWindow(limit, monotonic)
      const rate = createRateLimit(limit, monotonic, isShared ? async (...asked) => window(...asked) : undefined)
      for (let count = 1; count <= limit.requests; count++) {
        const call = callOf('a')
        assert.equal(await rate(call), undefined, `request ${count}`)
        assert.match(call.answerHeaders![1]!, /;t=1$/)
      }
    })
    await fc.assert(property, { numRuns: 200 })
  })

  it('loses no request of a lease that seems to have ended before its window', async () => {
    let now = 0
    const limit = { requests: 1000, seconds: 60 }
    const monotonic = () => now
    const window = createRateWindow(limit, monotonic)
    const step = stepOf(limit, monotonic, window, async (grant) => ({ ...grant, endsInMs: 5 }))
    for (let count = 0; count <= limit.requests; count += 1) {
      assert.equal((await step(callOf('a'))) instanceof Refusal, count === limit.requests, `request ${count}`)
      now += 10
    }
  })

  it('tells what is left of the limit in all processes that lease parts of it', async () => {
    const limit = { requests: 250, seconds: 60 }
    const window = createRateWindow(limit, AT_START)
    const steps = [0, 1].map(() => stepOf(limit, AT_START, window))
    const told: (string | undefined)[] = []
    for (const step of [...steps, ...steps]) {
      const request = callOf('a')
      assert.equal(await step(request), undefined)
      told.push(request.answerHeaders?.[1])
    }
    // Each process has leased two requests: the first does not know of the lease of the second.
    assert.deepEqual(
      told,
      [249, 247, 248, 246].map((left) => `"default";r=${left};t=60`),
    )
  })

  it('asks again after a lease that failed', async () => {
    const limit = { requests: 10, seconds: 60 }
    let isBroken = true
    const step = stepOf(limit, AT_START, createRateWindow(limit, AT_START), async (grant) => {
      if (isBroken) throw new Error('no answer')
      return grant
    })
    await assert.rejects(async () => step(callOf('a')), /no answer/)
    isBroken = false
    assert.equal(await step(callOf('a')), undefined)
  })

  it('tells a wait of at least a second and at most the window', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 100 }), fc.integer({ min: 0, max: 10 ** 9 }), (seconds, at) => {
        const request = callOf('a')
        const step = createRateLimit({ requests: 1, seconds }, () => at + 1_790_000_000_000)
        void step(request)
        const refusal = step(request)
        assert.ok(refusal !== undefined && !(refusal instanceof Promise))
        const wait = Number(refusal.headers?.[1])
        assert.ok(wait >= 1 && wait <= seconds)
        assert.deepEqual(request.answerHeaders, [
          'RateLimit',
          `"default";r=0;t=${wait}`,
          'RateLimit-Policy',
          `"default";q=1;w=${seconds}`,
        ])
      }),
    )
  })
})

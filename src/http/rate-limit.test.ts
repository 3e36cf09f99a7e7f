// The allowance of an account in a window of time.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { Refusal } from '../contract/errors.ts'
import type { OperationCall } from './call.ts'
import { createRateLimit, createRateWindow } from './rate-limit.ts'

/** The step reads the caller and leaves headers, nothing else. */
const requestOf = (accountId: string) => ({ caller: { accountId } }) as unknown as OperationCall

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
            const verdict = step(requestOf(account))
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
    const window = createRateWindow(limit, () => now)
    // A process whose leases arrive late, and one whose leases do not: they share the window.
    const late = createRateLimit(
      limit,
      () => now,
      async (account, wanted) => {
        const grant = window(account, wanted)
        await Promise.resolve()
        if (now < 11_000) now = 11_000
        return grant
      },
    )
    const prompt = createRateLimit(
      limit,
      () => now,
      async (account, wanted) => window(account, wanted),
    )
    now = 10_900
    const verdicts = [
      await late(requestOf('a')),
      await prompt(requestOf('a')),
      await prompt(requestOf('a')),
      await late(requestOf('a')),
    ]
    assert.deepEqual(
      verdicts.map((verdict) => verdict instanceof Refusal),
      [false, false, true, true],
    )
  })

  it('refuses nobody below the limit in a burst whose requests all wait for leases', async () => {
    const limit = { requests: 10, seconds: 60 }
    const window = createRateWindow(limit, () => 0)
    const step = createRateLimit(
      limit,
      () => 0,
      async (account, wanted) => window(account, wanted),
    )
    const accounts = Array.from({ length: 21 }, (_, index) => (index % 2 === 0 ? 'a' : 'b'))
    const verdicts = await Promise.all(accounts.map(async (account) => step(requestOf(account))))
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
        const request = requestOf('a')
        assert.equal(await rate(request), undefined, `request ${count}`)
        assert.match(request.answerHeaders![1]!, /;t=1$/)
      }
    })
    await fc.assert(property, { numRuns: 200 })
  })

  it('loses no request of a lease that seems to have ended before its window', async () => {
    let now = 0
    const limit = { requests: 1000, seconds: 60 }
    const window = createRateWindow(limit, () => now)
    const step = createRateLimit(
      limit,
      () => now,
      async (...asked) => ({ ...window(...asked), endsInMs: 5 }),
    )
    for (let count = 0; count <= limit.requests; count += 1) {
      assert.equal((await step(requestOf('a'))) instanceof Refusal, count === limit.requests, `request ${count}`)
      now += 10
    }
  })

  it('tells what is left of the limit in all processes that lease parts of it', async () => {
    const limit = { requests: 250, seconds: 60 }
    const window = createRateWindow(limit, () => 0)
    const steps = [0, 1].map(() =>
      createRateLimit(
        limit,
        () => 0,
        async (account, wanted) => window(account, wanted),
      ),
    )
    const told: (string | undefined)[] = []
    for (const step of [...steps, ...steps]) {
      const request = requestOf('a')
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
    const window = createRateWindow(limit, () => 0)
    let isBroken = true
    const step = createRateLimit(
      limit,
      () => 0,
      async (account, wanted) => {
        if (isBroken) throw new Error('no answer')
        return window(account, wanted)
      },
    )
    await assert.rejects(async () => step(requestOf('a')), /no answer/)
    isBroken = false
    assert.equal(await step(requestOf('a')), undefined)
  })

  it('tells a wait of at least a second and at most the window', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 100 }), fc.integer({ min: 0, max: 10 ** 9 }), (seconds, at) => {
        const request = requestOf('a')
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

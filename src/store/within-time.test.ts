// A bounded wait: it ends with the promise or at its limit, and leaves no timer that would keep a command from ending.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { Overdue, withinTime } from './within-time.ts'

const timers = () => process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length

it('A wait ends with its promise, and its timer too', async () => {
  const before = timers()
  const waits = [withinTime(Promise.resolve('done'), 60_000), withinTime(Promise.reject(new Error('failed')), 60_000)]
  assert.equal(timers(), before + 2)
  const [done, failed] = await Promise.allSettled(waits)
  assert.deepEqual(done, { status: 'fulfilled', value: 'done' })
  assert.match(String((failed as PromiseRejectedResult).reason), /^Error: failed$/)
  assert.equal(timers(), before)
})

it('A wait is overdue at its limit, whatever becomes of its promise', async () => {
  const late = Promise.withResolvers<never>()
  await assert.rejects(
    withinTime(late.promise, 1),
    (error) => error instanceof Overdue && /within 1 ms/.test(error.message),
  )
  late.reject(new Error('nobody waits for it any more'))
})

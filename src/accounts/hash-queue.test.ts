import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { HASHES_WAITING, HashQueue, TooManyHashes } from './hash-queue.ts'

/** A queue with work that ends when it is told to. */
function startQueue() {
  const queue = new HashQueue()
  const started: number[] = []
  const ends: (() => void)[] = []
  const run = (nth: number, signal?: AbortSignal) =>
    queue.run(async () => {
      started.push(nth)
      const end = Promise.withResolvers<void>()
      ends.push(() => end.resolve())
      await end.promise
      return nth
    }, signal)
  return { run, started, endNext: () => (ends.shift()?.(), setImmediate()) }
}

describe('the queue of password hashes', () => {
  it('works on two at a time, in order', async () => {
    const { run, started, endNext } = startQueue()
    const all = [1, 2, 3, 4].map((nth) => run(nth))
    assert.deepEqual(started, [1, 2])
    await endNext()
    assert.deepEqual(started, [1, 2, 3])
    for (let left = 3; left > 0; left -= 1) await endNext()
    assert.deepEqual(await Promise.all(all), [1, 2, 3, 4])
  })

  it('works on one at a time where several processes share the machine', async () => {
    const queue = new HashQueue()
    queue.atATime = 1
    let running = 0
    await Promise.all(
      [1, 2, 3].map(() =>
        queue.run(async () => {
          assert.equal((running += 1), 1)
          await setImmediate()
          running -= 1
        }),
      ),
    )
  })

  it('refuses one more when it is full, and takes it when there is room again', async () => {
    const { run, endNext } = startQueue()
    const all = Array.from({ length: 2 + HASHES_WAITING }, (_, nth) => run(nth))
    await assert.rejects(run(-1), TooManyHashes)
    await endNext()
    all.push(run(100))
    for (let left = all.length; left > 0; left -= 1) await endNext()
    await Promise.all(all)
  })

  it('skips a client that has left, whose place is free at once', async () => {
    const { run, started, endNext } = startQueue()
    const leave = new AbortController()
    const left = new Error('the client left')
    const running = Promise.all([run(1, leave.signal), run(2, leave.signal)])
    const refused = Promise.allSettled(Array.from({ length: HASHES_WAITING }, () => run(3, leave.signal)))
    leave.abort(left)
    assert.deepEqual(
      new Set((await refused).map((result) => result.status === 'rejected' && result.reason)),
      new Set([left]),
    )
    await assert.rejects(run(3, leave.signal), left)
    const stays = run(1000)
    await endNext()
    assert.deepEqual(started, [1, 2, 1000])
    await endNext()
    assert.deepEqual(await running, [1, 2], 'what has begun is finished')
    await endNext()
    assert.equal(await stays, 1000)
  })

  it('goes on after one that failed', async () => {
    const queue = new HashQueue()
    for (let time = 0; time < 5; time += 1)
      await assert.rejects(
        queue.run(() => Promise.reject(new Error('failed'))),
        /failed/,
      )
    assert.equal(await queue.run(async () => 'done'), 'done')
  })
})

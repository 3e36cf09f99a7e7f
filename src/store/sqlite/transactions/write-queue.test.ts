// For which writes a commit waits, and for how long.
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { holdTimers, someTurns } from '../../../../test/harness/connections/fake-server.ts'
import { type Write, WriteQueue } from './write-queue.ts'

const newWrite = (): Write => ({
  item: undefined,
  all: () => [],
  resolve: () => {},
  reject: () => {},
  deadline: 0,
})

/** A queue with one write, after a batch of this size and time, which began to gather more after so many milliseconds. */
async function gatherAfter(mock: TestContext['mock'], batch: number, batchMs: number, afterMs = 0) {
  let now = 1000
  mock.method(performance, 'now', () => now)
  const queue = new WriteQueue()
  queue.add(newWrite())
  queue.expectNextOf(Array.from({ length: batch }, newWrite), batchMs)
  now += afterMs
  const gathering = { queue, isOver: false }
  void queue.gather().then(() => (gathering.isOver = true))
  await someTurns()
  return gathering
}

describe('A commit', () => {
  it('waits for the writes of its turn, after however many promises they come', async () => {
    const queue = new WriteQueue()
    queue.add(newWrite())
    let isOver = false
    void queue.gather().then(() => (isOver = true))
    for (let count = 0; count < 50; count += 1) await Promise.resolve()
    assert.equal(isOver, false)
    await someTurns()
    assert.equal(isOver, true)
  })

  it('waits until the clients of the last one have written again, and no longer', async ({ mock }) => {
    using _held = holdTimers(mock)
    const gathering = await gatherAfter(mock, 3, 5)
    for (let client = 0; client < 3; client += 1) {
      assert.equal(gathering.isOver, false)
      gathering.queue.add(newWrite())
      await someTurns()
    }
    assert.equal(gathering.isOver, true)
  })

  for (const [batchMs, waitMs] of [
    [0, 1],
    [3, 3],
    [60_000, 5],
  ] as const)
    it(`waits ${waitMs} ms for clients that do not come back, after one that took ${batchMs} ms`, async ({ mock }) => {
      using held = holdTimers(mock)
      const gathering = await gatherAfter(mock, 2, batchMs)
      assert.deepEqual([gathering.isOver, held.waits.map(({ ms }) => ms)], [false, [waitMs]])
      held.waits[0]!.end()
      await someTurns()
      assert.equal(gathering.isOver, true)
    })

  for (const [why, batch, afterMs] of [
    ['after one of a single write', 1, 0],
    ['where the time was over before it could wait', 2, 20],
  ] as const)
    it(`waits for nobody ${why}`, async ({ mock }) => {
      using held = holdTimers(mock)
      const gathering = await gatherAfter(mock, batch, 5, afterMs)
      assert.deepEqual([gathering.isOver, held.waits], [true, []])
    })
})

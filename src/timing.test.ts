import assert from 'node:assert/strict'
import { it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { gatherTurns, inSlices, Overdue, together, withinTime } from './timing.ts'

/** Gathers numbers; `taken` has those that were handed over together. */
function gather(most: number, mustWait?: () => boolean) {
  const taken: (readonly number[])[] = []
  const add = gatherTurns<number>((gathered) => taken.push(gathered), most, mustWait)
  /** Lets these arrive, and a turn pass. */
  const arrive = async (...arrivals: number[]) => {
    for (const each of arrivals) add(each)
    await setImmediate()
  }
  return { taken, arrive }
}

it('What arrives in one turn is handed over together, and what comes alone in its own', async () => {
  const { taken, arrive } = gather(10)
  await arrive(1, 2, 3)
  await arrive(4)
  assert.deepEqual(taken, [[1, 2, 3], [4]])
})

it('Where more arrive than a turn takes, the rest follows in order, a turn later each', async () => {
  const { taken, arrive } = gather(2)
  await arrive(1, 2, 3)
  assert.deepEqual(taken.splice(0), [[1, 2]])
  await arrive(4, 5)
  assert.deepEqual(taken.splice(0), [[3, 4]])
  await arrive()
  assert.deepEqual(taken.splice(0), [[5]])
  await arrive(6)
  assert.deepEqual(taken, [[6]])
})

it('What arrives while a turn is taken follows in the next one, and nothing is handed over without an arrival', async () => {
  const taken: (readonly number[])[] = []
  const arrived = gatherTurns<number>((gathered) => {
    taken.push(gathered)
    // As a client whose next request is read while its first one is answered.
    if (gathered[0]! < 4) arrived(gathered[0]! + 1)
  }, 2)
  arrived(1)
  for (let turn = 0; turn < 8; turn += 1) await setImmediate()
  assert.deepEqual(taken, [[1], [2], [3], [4]])
})

it('What must wait is handed over later, all of it, in order', async () => {
  let mustWait = true
  const { taken, arrive } = gather(2, () => mustWait)
  await arrive(1, 2)
  await arrive(3)
  assert.deepEqual(taken, [])
  mustWait = false
  await arrive()
  await arrive()
  assert.deepEqual(taken, [[1, 2], [3]])
})

it('Long work of many callers takes a few milliseconds of each turn, and each caller gets on', async ({ mock }) => {
  // A whole number: five times 1 added to a fraction can be less than the fraction plus 5.
  let now = Math.ceil(performance.now())
  mock.method(performance, 'now', () => now)
  const items = Array.from({ length: 20 }, (_, index) => index)
  const callers = ['a', 'b', 'c'].map((caller) =>
    inSlices(items, (item) => {
      now += 1
      return `${caller}${item}`
    }),
  )
  for (let turn = 0; turn < 20; turn += 1) {
    const before = now
    await setImmediate()
    assert.ok(now - before <= 5, `${now - before} ms in one turn`)
  }
  assert.deepEqual(
    (await Promise.all(callers)).flat(),
    ['a', 'b', 'c'].flatMap((caller) => items.map((item) => `${caller}${item}`)),
  )
})

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

it('What is done together for the items of a turn gives each its own result, which may be a promise, or the error of all', async () => {
  const taken: (readonly number[])[] = []
  const half = together<number, number>(async (numbers) => {
    taken.push(numbers)
    if (numbers.includes(7)) throw new Error('seven')
    return numbers.map((number) => (number === 4 ? Promise.resolve(2) : number / 2))
  }, 3)
  assert.deepEqual(await Promise.all([2, 4, 6, 8].map(half)), [1, 2, 3, 4])
  assert.deepEqual(taken, [[2, 4, 6], [8]])
  const failed = await Promise.allSettled([half(7), half(2)])
  assert.deepEqual(
    failed.map(({ status }) => status),
    ['rejected', 'rejected'],
  )
})

// Rounds of calls, each round through all sizes, so that what else the machine does falls on all of them alike.
import type { GrownStore } from './databases.ts'
import { PENDING_EVERY, pet, SOLD_SHARE } from './databases.ts'

export interface Measured {
  name: string
  /** Of one call, by size: the median of the rounds. */
  microseconds: number[]
  /** To the smallest size, by size: the median of each round's ratio. */
  ratio: number[]
}

export interface EngineGrowth {
  engine: string
  version: string
  sizes: readonly number[]
  measures: Measured[]
}

interface Measure {
  name: string
  rounds: number
  /** Animals or pages that one call of `run` makes. */
  calls: number
  run: (grown: GrownStore) => Promise<unknown>
}

/** A page of 20, and the one more that tells whether another follows. */
const limit = 21
const TOGETHER = 50

/** Reads first: the creates let the stores grow, though by a few thousand animals only. */
const MEASURES: readonly Measure[] = [
  { name: 'first page', ...pages(({ store }) => store.pets.list({ limit })) },
  { name: 'first page, pending', ...pages(({ store }) => store.pets.list({ limit, status: 'pending' })) },
  { name: 'first page, sold: all old', ...pages(({ store }) => store.pets.list({ limit, status: 'sold' })) },
  { name: 'page anywhere', ...pages(({ store, size }) => store.pets.list({ limit, before: anywhere(size) })) },
  { name: 'page anywhere, pending', ...pages(({ store, size }) => store.pets.list({ limit, before: anywhere(size), status: 'pending' })) },
  { name: 'animal by id', ...pages(({ store, size }) => store.pets.get(anywhere(size))) },
  { name: 'create, alone', rounds: 100, calls: 5, run: (grown) => repeat(5, () => grown.store.pets.create(pet(1, 'available'))) },
  {
    name: `create, ${TOGETHER} at once`,
    rounds: 60,
    calls: TOGETHER,
    run: ({ store }) => Promise.all(Array.from({ length: TOGETHER }, (_, index) => store.pets.create(pet(index, 'available')))),
  },
]

/** As many of the first rounds are not counted: caches fill. */
const WARM_UP_SHARE = 0.5

export async function measureAll(stores: readonly GrownStore[]): Promise<Measured[]> {
  const measured: Measured[] = []
  for (const measure of MEASURES) measured.push(await measureOne(measure, stores))
  return measured
}

async function measureOne({ name, rounds, calls, run }: Measure, stores: readonly GrownStore[]): Promise<Measured> {
  const warmUp = rounds * WARM_UP_SHARE
  const times: number[][] = []
  for (let round = 0; round < warmUp + rounds; round += 1) {
    const row = Array.from({ length: stores.length }, () => 0)
    for (let step = 0; step < stores.length; step += 1) {
      // Each round begins elsewhere: being first, or coming after the largest, is nobody's lot for good.
      const index = (step + round) % stores.length
      const started = performance.now()
      await run(stores[index]!)
      row[index] = ((performance.now() - started) * 1000) / calls
    }
    if (round >= warmUp) times.push(row)
  }
  return {
    name,
    microseconds: stores.map((_, index) => rounded(median(times.map((row) => row[index]!)))),
    ratio: stores.map((_, index) => rounded(median(times.map((row) => row[index]! / row[0]!)))),
  }
}

function pages(call: (grown: GrownStore) => Promise<unknown>): Omit<Measure, 'name'> {
  const calls = 20
  return { rounds: 300, calls, run: (grown) => repeat(calls, () => call(grown)) }
}

async function repeat(times: number, call: () => Promise<unknown>): Promise<void> {
  for (let done = 0; done < times; done += 1) await call()
}

/** An id from the whole of the newer animals, but so that a full page of pending ones lies below it. */
function anywhere(size: number): bigint {
  const floor = size * SOLD_SHARE + limit * PENDING_EVERY
  return BigInt(Math.ceil(floor + Math.random() * (size - floor)))
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100
}

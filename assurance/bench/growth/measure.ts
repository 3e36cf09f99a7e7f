// Measures calls in rounds. Each round covers all sizes, so that other load on the machine affects all of them alike.
import { median } from '../../../test/harness/percentiles.ts'
import type { Pet, PetStatus } from '../../../src/contract/pets.ts'
import { type GrownStore, PENDING_EVERY, pet, SOLD_SHARE } from './databases.ts'

type Kind = 'page' | 'animal' | 'create'

export interface Measured {
  name: string
  kind: Kind
  rounds: number
  /** The time of one call, by size: the median of the rounds. */
  microseconds: number[]
  /** The ratio to the time with the smallest size, by size: the median of the rounds' ratios. */
  ratio: number[]
}

export interface EngineGrowth {
  version: string
  sizes: readonly number[]
  measures: Measured[]
}

interface Measure {
  name: string
  kind: Kind
  /** How long to measure, after a warm-up of half that time. */
  seconds: number
  /** How many calls one `run` makes. */
  calls: number
  run: (grown: GrownStore) => Promise<unknown>
}

/** A page of 20, and one more animal, which shows whether another page follows. */
const limit = 21
const READ_SECONDS = 12
const CREATE_SECONDS = 8
const CALLS = 20
const TOGETHER = 50

/** The reads come first, because the creates add some thousand animals to the stores. */
const MEASURES: readonly Measure[] = [
  read('page', 'first page', ({ store }) => store.pets.list({ limit })),
  read('page', 'first page, pending', ({ store }) => store.pets.list({ limit, status: 'pending' })),
  read('page', 'first page, sold: all old', ({ store }) => store.pets.list({ limit, status: 'sold' })),
  { name: 'page on page', kind: 'page', seconds: READ_SECONDS, calls: CALLS, run: (grown) => walk(grown, {}) },
  {
    name: 'page on page, pending',
    kind: 'page',
    seconds: READ_SECONDS,
    calls: CALLS,
    run: (grown) => walk(grown, { status: 'pending' }),
  },
  read('page', 'search, all match', ({ store }) => store.pets.search({ words: ['animal'], limit })),
  read('animal', 'search at random', ({ store, size }) =>
    store.pets.search({ words: [String(randomId(size))], limit }),
  ),
  read('animal', 'animal by id', ({ store, size }) => store.pets.get(randomId(size))),
  {
    name: 'create, alone',
    kind: 'create',
    seconds: CREATE_SECONDS,
    calls: 5,
    run: ({ store }) => repeat(5, () => store.pets.create(pet(1, 'available'))),
  },
  {
    name: `create, ${TOGETHER} at once`,
    kind: 'create',
    seconds: CREATE_SECONDS,
    calls: TOGETHER,
    run: ({ store }) =>
      Promise.all(Array.from({ length: TOGETHER }, (_, index) => store.pets.create(pet(index, 'available')))),
  },
]

export async function measureAll(stores: readonly GrownStore[]): Promise<Measured[]> {
  const measured: Measured[] = []
  for (const measure of MEASURES) measured.push(await measureOne(measure, stores))
  return measured
}

async function measureOne(
  { name, kind, seconds, calls, run }: Measure,
  stores: readonly GrownStore[],
): Promise<Measured> {
  const times: number[][] = []
  const warmUntil = performance.now() + seconds * 500
  const until = warmUntil + seconds * 1000
  for (let round = 0; performance.now() < until; round += 1) {
    const counts = performance.now() > warmUntil
    const row = Array.from({ length: stores.length }, () => 0)
    for (let step = 0; step < stores.length; step += 1) {
      // Each round starts with another store, so that no store always runs first or after the largest.
      const index = (step + round) % stores.length
      const started = performance.now()
      await run(stores[index]!)
      row[index] = ((performance.now() - started) * 1000) / calls
    }
    if (counts) times.push(row)
  }
  return {
    name,
    kind,
    rounds: times.length,
    microseconds: stores.map((_, index) => rounded(median(times.map((row) => row[index]!)))),
    ratio: stores.map((_, index) => rounded(median(times.map((row) => row[index]! / row[0]!)))),
  }
}

function read(kind: Kind, name: string, call: (grown: GrownStore) => Promise<unknown>): Measure {
  return { name, kind, seconds: READ_SECONDS, calls: CALLS, run: (grown) => repeat(CALLS, () => call(grown)) }
}

/** Pages by cursor from a random place in the list, as a client does; at the end of the list continues from its start. */
async function walk({ store, size }: GrownStore, filter: { status?: PetStatus }): Promise<void> {
  let before: bigint | undefined = randomId(size)
  for (let done = 0; done < CALLS; done += 1) {
    const page: Pet[] = await store.pets.list({ limit, ...filter, ...(before === undefined ? {} : { before }) })
    before = page.length < limit ? undefined : page.at(-2)!.id
  }
}

async function repeat(times: number, call: () => Promise<unknown>): Promise<void> {
  for (let done = 0; done < times; done += 1) await call()
}

/** Returns a random id of a newer animal, with at least a full page of pending animals below it. */
function randomId(size: number): bigint {
  const floor = size * SOLD_SHARE + limit * PENDING_EVERY
  return BigInt(Math.ceil(floor + Math.random() * (size - floor)))
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100
}

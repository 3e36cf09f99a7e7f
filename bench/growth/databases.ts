// One database of each size, all there at once, so that a round can measure them side by side.
import { readConfig } from '../../src/config.ts'
import type { NewPet, PetStatus } from '../../src/contract/pets.ts'
import { openStore } from '../../src/store/open-store.ts'
import type { Store } from '../../src/store/store.ts'
import type { BenchServer } from './engines.ts'

const BATCH = 10_000

export interface GrownStore {
  size: number
  store: Store
}

export interface GrownStores extends AsyncDisposable {
  stores: GrownStore[]
}

export async function growAll(server: BenchServer, sizes: readonly number[], say: (line: string) => void): Promise<GrownStores> {
  const stores: GrownStore[] = []
  for (const size of sizes) {
    const started = performance.now()
    const store = await openStore(readConfig({}, { DATABASE_URL: await server.newDatabase() }).database)
    stores.push({ size, store })
    for (let first = 0; first < size; first += BATCH) {
      await store.pets.createMany(Array.from({ length: Math.min(BATCH, size - first) }, (_, index) => pet(first + index)))
    }
    say(`${server.version}: ${size.toLocaleString('en')} animals in ${((performance.now() - started) / 1000).toFixed(1)} s`)
  }
  return {
    stores,
    async [Symbol.asyncDispose]() {
      for (const { store } of stores) await store.close()
    },
  }
}

/** Seven of ten are available, one is pending: the status that a page with a filter looks for. */
const STATUSES: readonly PetStatus[] = ['available', 'available', 'sold', 'available', 'available', 'available', 'pending', 'available', 'sold', 'available']

/** One of so many has the rarest status. */
export const RAREST = STATUSES.length

export function pet(number: number): NewPet {
  return { name: `Animal ${number}`, categoryId: BigInt(1 + (number % 12)), status: STATUSES[number % STATUSES.length]! }
}

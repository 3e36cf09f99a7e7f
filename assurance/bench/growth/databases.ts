// Creates one database of each size. All exist at the same time, so that each round can measure all of them.
import { say } from '../../../test/harness/say.ts'
import { readConfig } from '../../../src/config.ts'
import type { NewPet, PetStatus } from '../../../src/contract/pets.ts'
import { openStore } from '../../../src/store/opening/open-store.ts'
import type { Store } from '../../../src/store/store.ts'
import type { BenchServer } from './engines.ts'

const BATCH = 10_000
/** How many batches run at once, which fills PostgreSQL faster. */
const TOGETHER = 4

export interface GrownStore {
  size: number
  store: Store
}

export interface GrownStores extends AsyncDisposable {
  stores: GrownStore[]
}

export async function growAll(server: BenchServer, sizes: readonly number[]): Promise<GrownStores> {
  const stores: GrownStore[] = []
  for (const size of sizes) {
    const started = performance.now()
    const url = await server.newDatabase()
    const store = await openStore(readConfig({}, { DATABASE_URL: url }).database)
    stores.push({ size, store })
    let next = 0
    const fill = async () => {
      while (next < size) {
        const first = next
        next = Math.min(first + BATCH, size)
        await store.pets.createMany(Array.from({ length: next - first }, (_, index) => petOf(size, first + index)))
      }
    }
    await Promise.all(Array.from({ length: TOGETHER }, fill))
    say(
      `${server.version}: ${size.toLocaleString('en')} animals in ${((performance.now() - started) / 1000).toFixed(1)} s`,
    )
  }
  return {
    stores,
    async [Symbol.asyncDispose]() {
      for (const { store } of stores) await store.close()
    },
  }
}

/** The oldest fifth of the animals is sold. Of the newer animals one in ten is pending, and the others are available. */
export const SOLD_SHARE = 0.2
export const PENDING_EVERY = 10

function petOf(size: number, number: number): NewPet {
  const newer: PetStatus = number % PENDING_EVERY === 0 ? 'pending' : 'available'
  return pet(number, number < size * SOLD_SHARE ? 'sold' : newer)
}

export function pet(number: number, status: PetStatus): NewPet {
  return { name: `Animal ${number}`, categoryId: BigInt(1 + (number % 12)), status }
}

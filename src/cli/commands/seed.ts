// petstore seed: adds made-up animals, in short transactions, so that a running service stays responsive.
import { ALLOWED } from '../../contract/environments.ts'
import type { NewPet } from '../../contract/pets.ts'
import { type DatabaseAddress, describeDatabase } from '../../store/database/database-address.ts'
import {
  askToCreate,
  type Command,
  CommandFailed,
  conclude,
  readCount,
  STORE_OPTIONS,
  storeExists,
  withStore,
} from '../command.ts'
import { counted, showProgress } from '../terminal.ts'

const MAX_COUNT = 100_000_000
const BATCH = 500

export const seed: Command = {
  name: 'seed',
  summary: 'Add made-up animals, for trials and tests; not in production',
  options: { count: { value: 'N', meaning: 'How many animals to add' }, ...STORE_OPTIONS },
  examples: ['petstore seed --count 1000'],
  async run(input) {
    const count = readCount('count', input.flags['count'], 1, MAX_COUNT)
    const { database, environment } = input.config
    if (!ALLOWED.madeUpAnimals[environment] && !(await storeExists(database))) throw refusedIn(database)
    await askToCreate(input)
    await withStore(
      input,
      async (store) => {
        if (!ALLOWED.madeUpAnimals[(await store.environment()) ?? environment]) throw refusedIn(database)
        for (let added = 0; added < count;) {
          const batch = Array.from({ length: Math.min(BATCH, count - added) }, madeUpPet)
          await store.pets.createMany(batch, { at: input.terminal.clock(), by: undefined })
          added += batch.length
          showProgress(input.terminal, added, count)
        }
      },
      { create: true },
    )
    conclude(input, { added: count }, `Added ${counted(count, 'animal')}.`)
  },
}

function refusedIn(database: DatabaseAddress): CommandFailed {
  return new CommandFailed(
    `${describeDatabase(database)} belongs to production, where made-up animals would stay for good; nothing was added. Name a database of staging with --database or DATABASE_URL.`,
  )
}

const NAMES = `
  Bella Luna Max Charlie Milo Coco Rocky Daisy Buddy Nala Simba Oscar Ruby Leo Rosie Toby
  Willow Jasper Poppy Finn Hazel Otto Pepper Ziggy Mochi Biscuit Clover Juniper Maple Pickles Waffles Olive
`
  .trim()
  .split(/\s+/)
const TITLES = ['', '', '', '', ' Junior', ' the Brave', ' the Quiet', ' II']
const CATEGORIES = 12

function madeUpPet(): NewPet {
  const share = Math.random()
  const status = share < 0.7 ? 'available' : share < 0.85 ? 'pending' : 'sold'
  const categoryId = BigInt(1 + Math.floor(Math.random() * CATEGORIES))
  return { name: pick(NAMES) + pick(TITLES), categoryId, status } satisfies Required<NewPet>
}

function pick(values: readonly string[]): string {
  return values[Math.floor(Math.random() * values.length)]!
}

// petstore seed: adds made-up animals, in short transactions, so that a running server stays responsive.
import { wholeNumber } from '../config.ts'
import type { NewPet } from '../contract/pets.ts'
import { type Command, JSON_OPTION, settingOptions, UsageError, withStore } from './command.ts'
import { printJson, report, showProgress } from './terminal.ts'

const MAX_COUNT = 100_000_000
const BATCH = 500

export const seed: Command = {
  name: 'seed',
  summary: 'Add made-up animals, for trials and tests',
  takes: [],
  options: {
    count: { type: 'string', value: 'N', meaning: 'How many animals to add' },
    json: JSON_OPTION,
    ...settingOptions(['database']),
  },
  examples: ['petstore seed --count 1000'],
  async run(input) {
    const { terminal, flags, switches } = input
    const count = parseCount(flags['count'])
    await withStore(
      input,
      async ({ pets }) => {
        for (let added = 0; added < count;) {
          const batch = Array.from({ length: Math.min(BATCH, count - added) }, madeUpPet)
          await pets.createMany(batch)
          added += batch.length
          showProgress(terminal, added, count)
        }
      },
      { create: true },
    )
    if (switches['json']) printJson(terminal, { added: count })
    else report(terminal, `Added ${count} ${count === 1 ? 'animal' : 'animals'}.`)
  },
}

function parseCount(text: string | undefined): number {
  const count = text === undefined ? undefined : wholeNumber(1, MAX_COUNT)(text)
  if (count !== undefined) return count
  const got = text === undefined ? 'nothing' : JSON.stringify(text)
  throw new UsageError(`--count must be a whole number from 1 to ${MAX_COUNT}, got ${got}.`)
}

const NAMES = `
  Bella Luna Max Charlie Milo Coco Rocky Daisy Buddy Nala Simba Oscar Ruby Leo Rosie Toby
  Willow Jasper Poppy Finn Hazel Otto Pepper Ziggy Mochi Biscuit Clover Juniper Maple Pickles Waffles Olive
`
  .trim()
  .split(/\s+/)
const TITLES = ['', '', '', '', ' Junior', ' the Brave', ' the Quiet', ' II']
const CATEGORIES = 12

/** Most animals are available; a few are pending or sold. */
function madeUpPet(): NewPet {
  const share = Math.random()
  const status = share < 0.7 ? 'available' : share < 0.85 ? 'pending' : 'sold'
  return {
    name: pick(NAMES) + pick(TITLES),
    categoryId: BigInt(1 + Math.floor(Math.random() * CATEGORIES)),
    status,
  } satisfies Required<NewPet>
}

function pick(values: readonly string[]): string {
  return values[Math.floor(Math.random() * values.length)]!
}

// A store that has been in use for a while, for pictures and for tests that look at whole pages.
import { Problem } from '../../src/contract/errors.ts'
import type { NewPet } from '../../src/contract/pets.ts'
import type { Account, ApiKey, FailedRequest, UsageCount } from '../../src/store/account-store.ts'
import type { Running } from '../../src/server.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

export const SAMPLE_EMAIL = 'robin@feather-and-fur.example'
export const SAMPLE_PASSWORD = 'seven quiet lizards'

const NAMES = [
  ...'Mochi, Bella, Ziggy the Brave, Juniper, Otto, Pickles, Nala, Señor Whiskers, Luna, Waffles, Clover, Finn'.split(
    ', ',
  ),
  ...'Biscuit, Hazel, Rosie, Toby, Olive, Maple, Jasper, Poppy, Willow, Leo, كعكة, 雪'.split(', '),
]
/** The names of the numbers from 1; 11 and 12 have none. */
const CATEGORIES = 'Cats, Dogs, Rabbits, Guinea pigs, Hamsters, Budgies, Tortoises, Fish, Geckos, Hens'.split(', ')
const STATUSES = ['available', 'available', 'pending', 'available', 'sold', 'available', 'available', 'sold'] as const

export interface Sample {
  account: Account
  keys: ApiKey[]
}

/** A clock that can be set: the sample lived through the weeks before its present. */
export interface SettableClock {
  now: number
}

/** The same every time, but for random ids; leaves the clock as it found it. */
export async function fillStore({ accounts, store }: Running, clock: SettableClock): Promise<Sample> {
  const { now } = clock
  clock.now = now - 75 * DAY_MS
  const account = await accounts.create(SAMPLE_EMAIL, SAMPLE_PASSWORD, 'console', { name: 'Robin' })
  if (account instanceof Problem) throw new Error(account.message)
  const keys: ApiKey[] = []
  for (const [name, daysAgo, lasts] of [
    ['Old till', 74, undefined],
    ['Nightly import', 31, 90],
    ['Shop window', 9, undefined],
  ] as const) {
    clock.now = now - daysAgo * DAY_MS
    const made = await accounts.createKey(account, name, lasts && clock.now + lasts * DAY_MS, 'console')
    if (made instanceof Problem) throw new Error(made.message)
    keys.push(made.key)
  }
  clock.now = now
  const [till, nightly, shop] = keys as [ApiKey, ApiKey, ApiKey]
  const addition = { at: now - 31 * HOUR_MS, by: nightly.id }
  await store.pets.createMany(
    Array.from({ length: 1240 }, (_, index) => samplePet(index)),
    addition,
  )
  for (const [index, name] of CATEGORIES.entries()) {
    const event = { at: now, accountId: account.id, action: 'category.added', via: 'console', subject: name } as const
    await store.categories.save({ number: BigInt(index + 1), name }, undefined, event)
  }
  await store.accounts.recordUsage(
    sampleUsage(now, till, nightly, shop),
    new Map([
      [till.id, now - 3 * HOUR_MS],
      [nightly.id, now - 8 * HOUR_MS],
      [shop.id, now - 40_000],
    ]),
  )
  await store.accounts.recordFailures(sampleFailures(now, account, nightly, shop))
  return { account, keys }
}

function samplePet(index: number): NewPet {
  return {
    name: NAMES[(1239 - index) % NAMES.length]!,
    categoryId: BigInt(1 + ((index * 7) % 12)),
    status: STATUSES[index % STATUSES.length]!,
  }
}

function sampleUsage(now: number, till: ApiKey, nightly: ApiKey, shop: ApiKey): UsageCount[] {
  const counts: UsageCount[] = []
  const thisHour = now - (now % HOUR_MS)
  for (let back = 0; back < 7 * 24; back += 1) {
    const hour = thisHour - back * HOUR_MS
    const hourOfDay = new Date(hour).getUTCHours()
    const busy = Math.max(0, Math.sin(((hourOfDay - 6) / 15) * Math.PI)) * (1 + ((back * 5) % 7) / 14)
    const add = (key: ApiKey, operation: string, status: number, calls: number) => {
      if (calls > 0) counts.push({ keyId: key.id, hour, operation, status, calls })
    }
    add(shop, 'listPets', 200, Math.round(busy * 84))
    add(shop, 'listPets', 304, Math.round(busy * 31))
    if (hourOfDay === 2) add(nightly, 'createPet', 201, 140 + ((back * 3) % 40))
    if (hourOfDay === 2 && back > 90) add(nightly, 'createPet', 400, 35)
    if (back % 9 === 4) add(till, 'getPet', 200, 2)
    if (back === 61) add(shop, 'listPets', 503, 6)
  }
  return counts
}

function sampleFailures(now: number, { id: accountId }: Account, nightly: ApiKey, shop: ApiKey): FailedRequest[] {
  const list = { accountId, keyId: shop.id, operation: 'listPets' }
  const create = { accountId, keyId: nightly.id, operation: 'createPet' }
  return [
    {
      ...list,
      at: now - 2.6 * DAY_MS,
      requestId: '0f7b5d6e-51ce-4f0e-8a5e-3f0f2f1e9a77',
      status: 503,
      code: 'service_unavailable',
      message: 'The database is not available at the moment. Nothing was stored; try again shortly.',
    },
    {
      ...list,
      at: now - 9 * HOUR_MS,
      requestId: 'c2a41d0f-7d2c-4a9b-9b6e-1f5a0a8f3b21',
      status: 400,
      code: 'invalid_parameter',
      message: 'The query parameter limit must be a whole number from 1 to 100 in decimal digits, got "250".',
    },
    {
      ...create,
      at: now - 8 * HOUR_MS,
      requestId: '9be0c7a4-0f6c-4c58-b0a1-7b8e2d4f6c10',
      status: 400,
      code: 'invalid_pet',
      message: 'categoryId must be an integer from -9223372036854775808 to 9223372036854775807, got "12".',
    },
  ]
}

// The download: all animals that the list or the search shows, as CSV, with the time when each was added.
import { entryOf } from '../../contract/text/entry-of.ts'
import { foldForSearch } from '../../contract/text/search-words.ts'
import { Problem } from '../../contract/errors.ts'
import { DELIMITERS, renderCsv } from '../../contract/pet-csv.ts'
import { STATUS_WORDS } from '../../contract/pet-words.ts'
import type { Pet } from '../../contract/pets.ts'
import type { FoundPets } from '../../store/store.ts'
import { ALL } from './animal-addresses.ts'
import { type Asked, readAsked } from './animal-list.ts'
import { badRequestPage } from '../every-page/problem-pages.ts'
import { type ConsoleRoute, forMembers, type MemberVisit, type Outcome } from '../every-page/visit.ts'

export const animalFileRoutes: readonly ConsoleRoute[] = [forMembers('GET', '/animals.csv', csvFile)]

/** How many animals of a file are read at a time. */
const BATCH = 1000

/** Returns all animals, page after page, the newest first. */
function csvFile(visit: MemberVisit): Outcome {
  const { store, categories, query: raw, left } = visit
  const parsed = readAsked(raw, ALL)
  if (parsed instanceof Problem) return badRequestPage(400, parsed.message)
  const { before: _before, after: _after, ...filters } = parsed
  const delimiter = entryOf(DELIMITERS, raw.get('delimiter') ?? 'comma')
  if (delimiter === undefined)
    return badRequestPage(400, `The delimiter must be one of ${Object.keys(DELIMITERS).join(', ')}.`)
  const { q, words } = parsed
  if (q !== '' && words.length === 0) return badRequestPage(400, 'A search needs a letter, digit or symbol.')
  async function read(before?: bigint): Promise<Pick<FoundPets, 'pets' | 'next'>> {
    const page = { ...filters, limit: BATCH, ...(before !== undefined && { before }) }
    if (q !== '') return store.pets.search({ ...page, signal: left })
    const pets = await store.pets.list(page)
    return { pets, next: pets.length < BATCH ? undefined : pets.at(-1)!.id }
  }
  async function* batches(): AsyncGenerator<Pet[]> {
    for (let page = await read(); ; page = await read(page.next)) {
      yield page.pets
      if (page.next === undefined) return
    }
  }
  const content = renderCsv(batches(), categories, delimiter, (ids) => store.pets.additions(ids))
  return { file: fileName(visit, parsed), type: 'text/csv; charset=utf-8', content }
}

/** Returns a name of what the file has, and of the day, such as animals-in-the-shop-cats-2026-11-19.csv. */
function fileName({ categories, now }: MemberVisit, { status, inShop, categoryId, q }: Asked): string {
  const shown = inShop ? 'in the shop' : status ? STATUS_WORDS[status] : ''
  const category = categoryId === undefined ? '' : categories.words(categoryId)
  const words = ['animals', shown, category, q].map((text) => foldForSearch(text).slice(0, 40)).join(' ')
  return `${words.match(/[a-z0-9]+/g)!.join('-')}-${new Date(now).toISOString().slice(0, 10)}.csv`
}

// Reads the page of animals that an address asks for, of the list or of a search: from the newest or from the oldest, by an index, or by
// name. Few animals are sorted by name, in memory, and so are those of a search from the oldest.
import { encodeCursor, parseListQuery } from '../../contract/list-query.ts'
import { Problem } from '../../contract/errors.ts'
import { int64FromText } from '../../contract/int64.ts'
import type { Pet } from '../../contract/pets.ts'
import { entryOf } from '../../contract/text/entry-of.ts'
import { foldForSearch, wordsOf } from '../../contract/text/search-words.ts'
import { COUNTED_MOST, type PetCounts } from '../../store/pet-counts.ts'
import { type PetList, statusesOf } from '../../store/pet-list.ts'
import type { FoundPets } from '../../store/store.ts'
import { inSlices } from '../../timing.ts'
import {
  ACCEPTED,
  ALL,
  CATEGORY,
  type Chosen,
  IN_SHOP,
  listAddress,
  ROWS,
  SORTS,
  type Sort,
} from './animal-addresses.ts'
import type { Pages } from '../every-page/paging.ts'
import { searchAlone } from '../every-page/readings.ts'
import type { MemberVisit } from '../every-page/visit.ts'

/** How many animals can be sorted or selected at once. */
export const ALL_MOST = 1000

export type Asked = PetList & Required<Pick<Chosen, 'q' | 'sort'>> & { words: string[] }

/** A status that was not counted is shown without a number. */
export type StatusCounts = Partial<PetCounts>

interface Found {
  pets: readonly Pet[]
  counts: StatusCounts
}

export interface Listed extends Found {
  sort: Sort
  /** The number of the first animal. It may be a hint of the address: NaN, or one that can't be right. */
  start: number
  /** How many there are, if they were counted. */
  total: number | undefined
  pages: Pages
}

/** Repeats no text of the address, which may be somebody else's link. */
const NO_SUCH_LIST = new Problem(
  'The address names a status, a category, an order or a place in the list that does not exist.',
)

/** Below every id. */
const BEFORE_ALL = -(2n ** 63n)

/**
 * Reads status, category, words, order and position in the list: `cursor` is where the next page starts, `newer` where the page before ends.
 * Without a status the list shows what is in the shop; a file has all.
 */
export function readAsked(raw: URLSearchParams, whenAbsent: typeof ALL | typeof IN_SHOP): Asked | Problem {
  const category = raw.get(CATEGORY) ?? ''
  const categoryId = int64FromText(category)
  const sort = raw.get('sort') ?? 'newest'
  const isNone = (category !== '' && categoryId === undefined) || entryOf(SORTS, sort) === undefined
  const shown = raw.get('status') ?? whenAbsent
  const sent = new URLSearchParams(ACCEPTED.flatMap(({ name }) => (raw.has(name) ? [[name, raw.get(name)!]] : [])))
  if (shown === ALL || shown === IN_SHOP) sent.delete('status')
  if (raw.has('newer')) sent.set('cursor', raw.get('newer')!)
  const parsed = isNone ? NO_SUCH_LIST : parseListQuery(sent)
  // The words of the API repeat what came.
  const isOneWord = [...sent.values()].every((value) => /^[a-z]{0,20}$/.test(value))
  if (parsed instanceof Problem) return isOneWord ? parsed : NO_SUCH_LIST
  const { before, ...query } = parsed
  const bound = before ?? (sort === 'oldest' ? BEFORE_ALL : undefined)
  const q = raw.get('q')?.trim() ?? ''
  return {
    ...query,
    q,
    words: wordsOf(q),
    limit: ROWS,
    ...(categoryId !== undefined && { categoryId }),
    inShop: shown === IN_SHOP,
    sort: sort as Sort,
    ...(bound !== undefined && { [raw.has('newer') === (sort === 'oldest') ? 'before' : 'after']: bound }),
  }
}

/** Reads the page that is asked for: of the list, or of what has the words in its name; of the newest if they are too many to be sorted. */
export async function readPage(visit: MemberVisit, asked: Asked): Promise<Listed> {
  const { before: _before, after: _after, ...filters } = asked
  const isSearch = asked.words.length > 0
  if (asked.sort === 'name' || (asked.sort === 'oldest' && isSearch)) {
    const all = await readAll(visit, asked)
    return all ? sorted(visit, asked, all) : readPage(visit, { ...filters, sort: 'newest' })
  }
  return isSearch ? readSearch(visit, asked) : readList(visit, asked)
}

/** Reads all animals that the list or the search has; undefined if they are too many, or if the search has not reached its end. */
export async function readAll(visit: MemberVisit, asked: Asked): Promise<Found | undefined> {
  const { before: _before, after: _after, ...filters } = asked
  const all = { ...filters, limit: ALL_MOST + 1 }
  const { next, ...found } =
    asked.words.length > 0 ? await search(visit, all) : { ...(await list(visit, all)), next: undefined }
  return next === undefined && found.pets.length <= ALL_MOST ? found : undefined
}

async function list({ store: { pets } }: MemberVisit, query: Asked): Promise<Found> {
  const [found, counts] = await Promise.all([pets.list(query), pets.countByStatus(query.categoryId)])
  return { pets: found, counts }
}

function search(visit: MemberVisit, { after: _after, ...query }: Asked): Promise<FoundPets> {
  return searchAlone(visit, (signal) => visit.store.pets.search({ ...query, isCounted: true, signal }))
}

async function readList(visit: MemberVisit, asked: Asked): Promise<Listed> {
  const { before, after, ...filters } = asked
  const isOldest = asked.sort === 'oldest'
  const isBack = (isOldest ? before : after) !== undefined
  const { pets, counts } = await list(visit, { ...asked, limit: ROWS + 1 })
  // No page before follows: reads the first page instead, which is never shorter.
  if (isBack && pets.length <= ROWS) return readList(visit, { ...filters, ...(isOldest && { after: BEFORE_ALL }) })
  // The one animal too many is at the end that the query goes towards.
  const ordered = isOldest ? pets.toReversed() : pets
  const page = isBack ? ordered.slice(-ROWS) : ordered.slice(0, ROWS)
  const isFirst = !isBack && (isOldest ? after === BEFORE_ALL : before === undefined)
  const isLast = !isBack && pets.length <= ROWS
  const total = countOf(counts, asked)
  const isKnown = isLast && !isFirst && total !== undefined && total <= COUNTED_MOST
  const start = isKnown ? total - page.length + 1 : hintOf(visit, isFirst)
  const [back, previous, next] = isOldest
    ? (['oldest', 'previous', 'next'] as const)
    : (['newest', 'newer', 'older'] as const)
  const pages: Pages = {
    ...(!isFirst && {
      [back]: listAddress(asked),
      [previous]: placeOf(asked, 'newer', page[0]?.id, Math.max(1, start - ROWS)),
    }),
    ...(!isLast && { [next]: placeOf(asked, 'cursor', page.at(-1)?.id, start + ROWS) }),
  }
  return { pets: page, counts, sort: asked.sort, start, total, pages }
}

/** Returns the address of the page from an animal on; `at` is the number of its first one, if that is known. */
function placeOf(asked: Asked, name: 'newer' | 'cursor', id: bigint | undefined, at: number): string | undefined {
  return id === undefined ? id : listAddress(asked, { [name]: encodeCursor(id), at: at > 0 ? String(at) : '' })
}

/** Returns the number of the first animal that the address has as a hint: NaN if it has none. */
function hintOf({ query }: MemberVisit, isFirst: boolean): number {
  return isFirst ? 1 : Math.trunc(Number(query.get('at') ?? NaN))
}

async function readSearch(visit: MemberVisit, asked: Asked): Promise<Listed> {
  const { next, isFull, ...found } = await search(visit, asked)
  const isFirst = asked.before === undefined
  const start = hintOf(visit, isFirst)
  const pages: Pages = {
    ...(!isFirst && { first: listAddress(asked) }),
    [isFull ? 'older' : 'searchOlder']: placeOf(asked, 'cursor', next, start + found.pets.length),
  }
  return { ...found, sort: asked.sort, start, total: countOf(found.counts, asked), pages }
}

/** Sorts all that match by name, or else from the oldest; `at` of the address is where the page starts. */
async function sorted(visit: MemberVisit, asked: Asked, found: Found): Promise<Listed> {
  const isByName = asked.sort === 'name'
  const keyed = await inSlices(found.pets, (pet) => ({ pet, key: isByName ? foldForSearch(pet.name) : '' }), visit.left)
  const sign = (one: string | bigint, other: string | bigint) => Number(one > other) - Number(one < other)
  keyed.sort((one, other) => sign(one.key, other.key) || sign(one.pet.id, other.pet.id))
  const start = Math.max(1, Math.min(hintOf(visit, false) || 1, keyed.length))
  const page = (at: number) => listAddress(asked, { at: at > 1 ? String(at) : '' })
  const pages = {
    ...(start > 1 && { first: page(1), previous: page(start - ROWS) }),
    ...(start + ROWS <= keyed.length && { next: page(start + ROWS) }),
  }
  const pets = keyed.slice(start - 1, start - 1 + ROWS).map(({ pet }) => pet)
  return { ...found, pets, sort: asked.sort, start, total: keyed.length, pages }
}

export type Sorts = Partial<Record<Sort, string>>

/** Returns the addresses of the same animals in the orders that there are. */
export function sortsOf(asked: Asked, { total }: Listed): Sorts {
  const isSmall = total !== undefined && total <= ALL_MOST
  const offered = (Object.keys(SORTS) as Sort[]).filter(
    (sort) => isSmall || sort === 'newest' || (sort === 'oldest' && asked.q === ''),
  )
  return Object.fromEntries(offered.map((sort) => [sort, listAddress({ ...asked, sort })]))
}

/** Returns how many animals the counts have of what is shown; undefined if not all of that was counted. */
export function countOf(counts: StatusCounts, shown: Pick<Chosen, 'status' | 'inShop'>): number | undefined {
  const numbers = statusesOf(shown).map((status) => counts[status])
  return numbers.reduce((sum, number) => (sum === undefined || number === undefined ? undefined : sum + number), 0)
}

// Reads the page of animals that an address asks for, of the list or of a search: from the newest or from the oldest, by an index, or by
// name. Few animals are sorted by name, in memory, and so are those of a search from the oldest.
import { encodeCursor, parseListQuery } from '../../contract/list-query.ts'
import { Problem } from '../../contract/errors.ts'
import { int64FromText } from '../../contract/int64.ts'
import type { Pet } from '../../contract/pets.ts'
import { entryOf } from '../../contract/text/entry-of.ts'
import { foldForSearch } from '../../contract/text/search-words.ts'
import { COUNTED_MOST, type PetCounts } from '../../store/pet-counts.ts'
import { type PetList, statusesOf } from '../../store/pet-list.ts'
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

/** How many animals are sorted in memory at most. */
const SORTED_MOST = 1000

export type Asked = PetList & { sort: Sort }

/** A status that was not counted is shown without a number. */
export type StatusCounts = Partial<PetCounts>

export interface Listed {
  pets: readonly Pet[]
  counts: StatusCounts
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
 * Reads status, category, order and position in the list: `cursor` is where the next page starts, `newer` where the page before ends.
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
  return {
    ...query,
    limit: ROWS,
    ...(categoryId !== undefined && { categoryId }),
    inShop: shown === IN_SHOP,
    sort: sort as Sort,
    ...(bound !== undefined && { [raw.has('newer') === (sort === 'oldest') ? 'before' : 'after']: bound }),
  }
}

/** Reads a page of the list. With `isBack`, the one that ends where the address says. */
export async function readList(visit: MemberVisit, asked: Asked, isBack = visit.query.has('newer')): Promise<Listed> {
  const { pets } = visit.store
  const { before, after, sort, ...filters } = asked
  const [isOldest, most] = [sort === 'oldest', sort === 'name' ? SORTED_MOST : ROWS]
  const listing = pets.list({ ...asked, limit: most + 1 })
  const [found, counts] = await Promise.all([listing, pets.countByStatus(asked.categoryId)])
  if (sort === 'name' && found.length <= most) return sorted(visit, asked, { pets: found, counts })
  if (sort === 'name') return readList(visit, { ...filters, sort: 'newest' }, false)
  // No page before follows: reads the first page instead, which is never shorter.
  const start = isOldest ? { after: BEFORE_ALL } : {}
  if (isBack && found.length <= most) return readList(visit, { ...filters, sort, ...start }, false)
  // The one animal too many is at the end that the query goes towards.
  const ordered = isOldest ? found.toReversed() : found
  const page = isBack ? ordered.slice(-most) : ordered.slice(0, most)
  const isFirst = !isBack && (isOldest ? after === BEFORE_ALL : before === undefined)
  const isLast = !isBack && found.length <= most
  const total = countOf(counts, asked)
  const first =
    isLast && !isFirst && total !== undefined && total <= COUNTED_MOST
      ? total - page.length + 1
      : hintOf(visit, isFirst)
  const place = (name: string, pet: Pet | undefined, at: number) =>
    pet && listAddress(asked, { [name]: encodeCursor(pet.id), at: at > 0 ? String(at) : '' })
  const [back, previous, next] = isOldest
    ? (['oldest', 'previous', 'next'] as const)
    : (['newest', 'newer', 'older'] as const)
  const pages: Pages = {
    ...(!isFirst && { [back]: listAddress(asked), [previous]: place('newer', page[0], Math.max(1, first - most)) }),
    ...(!isLast && { [next]: place('cursor', page.at(-1), first + most) }),
  }
  return { pets: page, counts, sort, start: first, total, pages }
}

/** Returns the number of the first animal that the address has as a hint: NaN if it has none. */
function hintOf({ query }: MemberVisit, isFirst: boolean): number {
  return isFirst ? 1 : Math.trunc(Number(query.get('at') ?? NaN))
}

/** Reads a page of what has the words in its name. */
export async function readSearch(visit: MemberVisit, asked: Asked, q: string, words: string[]): Promise<Listed> {
  const { before, after: _after, sort, ...filters } = asked
  const range = sort === 'newest' ? { limit: ROWS, ...(before !== undefined && { before }) } : { limit: SORTED_MOST }
  const search = { ...filters, ...range, words, isCounted: true }
  const { next, isFull, ...found } = await searchAlone(visit, (signal) =>
    visit.store.pets.search({ ...search, signal }),
  )
  if (sort !== 'newest' && next === undefined) return sorted(visit, asked, found, q)
  if (sort !== 'newest') return readSearch(visit, { ...filters, sort: 'newest' }, q, words)
  const start = hintOf(visit, before === undefined)
  const at = start > 0 ? String(start + found.pets.length) : ''
  const pages: Pages = {
    ...(before !== undefined && { first: listAddress(asked, { q }) }),
    ...(next !== undefined && {
      [isFull ? 'older' : 'searchOlder']: listAddress(asked, { q, cursor: encodeCursor(next), at }),
    }),
  }
  return { ...found, sort, start, total: countOf(found.counts, asked), pages }
}

/** Sorts all that match by name, or else from the oldest; `at` of the address is where the page starts. */
async function sorted(
  visit: MemberVisit,
  asked: Asked,
  found: Pick<Listed, 'pets' | 'counts'>,
  q = '',
): Promise<Listed> {
  const isByName = asked.sort === 'name'
  const keyed = await inSlices(found.pets, (pet) => ({ pet, key: isByName ? foldForSearch(pet.name) : '' }), visit.left)
  const sign = (one: string | bigint, other: string | bigint) => Number(one > other) - Number(one < other)
  keyed.sort((one, other) => sign(one.key, other.key) || sign(one.pet.id, other.pet.id))
  const start = Math.max(1, Math.min(hintOf(visit, false) || 1, keyed.length))
  const page = (at: number) => listAddress(asked, { q, at: at > 1 ? String(at) : '' })
  const pages = {
    ...(start > 1 && { first: page(1), previous: page(start - ROWS) }),
    ...(start + ROWS <= keyed.length && { next: page(start + ROWS) }),
  }
  const pets = keyed.slice(start - 1, start - 1 + ROWS).map(({ pet }) => pet)
  return { ...found, pets, sort: asked.sort, start, total: keyed.length, pages }
}

export type Sorts = Partial<Record<Sort, string>>

/** Returns the addresses of the same animals in the orders that there are. */
export function sortsOf(asked: Chosen, { total }: Listed, q: string): Sorts {
  const isSmall = total !== undefined && total <= SORTED_MOST
  const offered = (Object.keys(SORTS) as Sort[]).filter(
    (sort) => isSmall || sort === 'newest' || (sort === 'oldest' && q === ''),
  )
  return Object.fromEntries(offered.map((sort) => [sort, listAddress({ ...asked, sort }, { q })]))
}

/** Returns how many animals the counts have of what is shown; undefined if not all of that was counted. */
export function countOf(counts: StatusCounts, shown: Pick<Chosen, 'status' | 'inShop'>): number | undefined {
  const numbers = statusesOf(shown).map((status) => counts[status])
  return numbers.reduce((sum, number) => (sum === undefined || number === undefined ? undefined : sum + number), 0)
}

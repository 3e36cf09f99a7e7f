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
  /** The number of the first animal, if it is known. */
  start: number | undefined
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
  const [isOldest, isByName] = [sort === 'oldest', sort === 'name']
  const listing = pets.list({ ...asked, limit: (isByName ? SORTED_MOST : ROWS) + 1 })
  const [found, counts] = await Promise.all([listing, pets.countByStatus(asked.categoryId)])
  if (isByName)
    return found.length > SORTED_MOST
      ? readList(visit, { ...filters, sort: 'newest' }, false)
      : sorted(visit, asked, found, counts)
  // No page before follows: reads the first page instead, which is never shorter.
  if (isBack && found.length <= ROWS)
    return readList(visit, { ...filters, sort, ...(isOldest && { after: BEFORE_ALL }) }, false)
  // The one animal too many is at the end that the query goes towards.
  const ordered = isOldest ? found.toReversed() : found
  const page = isBack ? ordered.slice(-ROWS) : ordered.slice(0, ROWS)
  const isFirst = !isBack && (isOldest ? after === BEFORE_ALL : before === undefined)
  const isLast = !isBack && found.length <= ROWS
  const total = countOf(counts, asked)
  const start = startOf(visit.query, isFirst, page.length, total, isLast)
  const place = (name: string, pet: Pet, at: number) =>
    listAddress(asked, { [name]: encodeCursor(pet.id), at: start === undefined ? '' : String(at) })
  const pages: Pages = {}
  if (!isFirst) pages[isOldest ? 'oldest' : 'newest'] = listAddress(asked)
  if (!isFirst && page[0]) pages[isOldest ? 'previous' : 'newer'] = place('newer', page[0], Math.max(1, start! - ROWS))
  if (!isLast) pages[isOldest ? 'next' : 'older'] = place('cursor', page.at(-1)!, start! + ROWS)
  return { pets: page, counts, sort, start, total, pages }
}

/** Returns the number of the first animal of a page. That of an address is a hint, which is left out where it can't be right. */
function startOf(raw: URLSearchParams, isFirst: boolean, shown: number, total = Infinity, isLast = false) {
  if (isFirst) return 1
  const isCounted = total <= COUNTED_MOST
  const start = isLast && isCounted ? total - shown + 1 : Number(raw.get('at'))
  const isPossible = Number.isSafeInteger(start) && start > 1 && (!isCounted || start + shown - 1 <= total)
  return isPossible ? start : undefined
}

/** Reads a page of what has the words in its name. */
export async function readSearch(visit: MemberVisit, asked: Asked, q: string, words: string[]): Promise<Listed> {
  const { before, after: _after, sort, ...filters } = asked
  const isNewest = sort === 'newest'
  const page = { ...filters, limit: isNewest ? ROWS : SORTED_MOST, ...(isNewest && { before }) }
  const { pets, next, isFull, counts } = await searchAlone(visit, (signal) =>
    visit.store.pets.search({ ...page, words, isCounted: true, signal }),
  )
  if (!isNewest)
    return next === undefined
      ? sorted(visit, asked, pets, counts, q)
      : readSearch(visit, { ...filters, sort: 'newest' }, q, words)
  const total = countOf(counts, asked)
  // Those with a status that only a later release knows are not counted.
  const known = total !== undefined && total >= pets.length ? total : undefined
  const start = startOf(visit.query, before === undefined, pets.length, known)
  const at = start === undefined ? '' : String(start + pets.length)
  return {
    pets,
    counts,
    sort,
    start,
    total: known,
    pages: {
      ...(before !== undefined && { first: listAddress(asked, { q }) }),
      ...(next !== undefined && {
        [isFull ? 'older' : 'searchOlder']: listAddress(asked, { q, cursor: encodeCursor(next), at }),
      }),
    },
  }
}

/** Sorts all that match by name, or else from the oldest; `at` of the address is where the page starts. */
async function sorted(
  visit: MemberVisit,
  asked: Asked,
  all: readonly Pet[],
  counts: StatusCounts,
  q = '',
): Promise<Listed> {
  const { sort } = asked
  const keyed = await inSlices(all, (pet) => ({ pet, key: sort === 'name' ? foldForSearch(pet.name) : '' }), visit.left)
  const isBefore = (one: (typeof keyed)[0], other: (typeof keyed)[0]) =>
    one.key === other.key ? one.pet.id < other.pet.id : one.key < other.key
  keyed.sort((one, other) => (isBefore(one, other) ? -1 : 1))
  const start = Math.max(1, Math.min(Math.trunc(Number(visit.query.get('at'))) || 1, all.length))
  const page = (at: number) => listAddress(asked, { q, at: at > 1 ? String(at) : '' })
  return {
    pets: keyed.slice(start - 1, start - 1 + ROWS).map(({ pet }) => pet),
    counts,
    sort,
    start,
    total: all.length,
    pages: {
      ...(start > 1 && { first: page(1), previous: page(start - ROWS) }),
      ...(start + ROWS <= all.length && { next: page(start + ROWS) }),
    },
  }
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

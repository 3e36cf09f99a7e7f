// The addresses of the list of animals and of an animal, which remember the filters and the position in the list.
import { filterQuery, type Filters, LIST_PARAMETERS } from '../../contract/list-query.ts'
import type { PetList } from '../../store/pet-list.ts'

/** What the animals of a list have in common, the words that are sought among them, and their order. */
export type Chosen = Filters & Pick<PetList, 'categoryId' | 'inShop'> & { q?: string; sort?: Sort }

/** Values of the parameter `status` that are no status. The list shows what is in the shop if it is absent. */
export const ALL = 'all'
export const IN_SHOP = 'shop'

/** The parameters of listPets that the console accepts too: all except for the size of a page. */
export const ACCEPTED = LIST_PARAMETERS.filter(({ name }) => name !== 'limit')

/** The page of all categories, from which that of the list is chosen. */
export const CHOOSER = '/animals/category'

/** The parameter of the category, which only the console has. */
export const CATEGORY = 'category'

/** How many animals a page of the list has. */
export const ROWS = 50

/** The orders of the list, by the parameter `sort`. */
export const SORTS = { newest: 'Newest first', oldest: 'Oldest first', name: 'By name' } as const
export type Sort = keyof typeof SORTS

/** The parameters that tell where in the list or search the visitor is; `at` is the number of the first row, a hint. */
const POSITION = [...ACCEPTED.map(({ name }) => name), CATEGORY, 'sort', 'newer', 'at', 'q']

export function listAddress(chosen: Chosen, more: Record<string, string> = {}): string {
  return withFilters('/animals', chosen, more)
}

export function withFilters(path: string, chosen: Chosen, more: Record<string, string> = {}): string {
  return withQuery(path, { ...chosenQuery(chosen), q: chosen.q ?? '', ...more })
}

/** Returns the query of a list without the words. */
export function chosenQuery(chosen: Chosen): Record<string, string> {
  const { categoryId, sort, ...filters } = chosen
  const category = categoryId === undefined ? {} : { [CATEGORY]: String(categoryId) }
  const order = sort === undefined || sort === 'newest' ? {} : { sort }
  const all = chosen.inShop ? {} : { status: ALL }
  return { ...all, ...Object.fromEntries(new URLSearchParams(filterQuery(filters))), ...category, ...order }
}

/** Returns an address that remembers the position in the list that the visitor came from. */
export function keepingPosition(path: string, raw: URLSearchParams, more: Record<string, string> = {}): string {
  const position = POSITION.flatMap((name) => (raw.has(name) ? [[name, raw.get(name)!]] : []))
  return withQuery(path, { ...(Object.fromEntries(position) as Record<string, string>), ...more })
}

/** Leaves out parameters that are empty. */
export function withQuery(path: string, parameters: Record<string, string>): string {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== '')).toString()
  return query === '' ? path : `${path}?${query}`
}

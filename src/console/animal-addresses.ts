// The addresses of the list of animals and of an animal, which remember the filters and the position in the list.
import { filterQuery, type Filters, LIST_PARAMETERS } from '../contract/list-query.ts'

/** The parameters of listPets that the console accepts too: all except for the size of a page. */
export const ACCEPTED = LIST_PARAMETERS.filter(({ name }) => name !== 'limit')

/** The parameters that tell where in the list or search the visitor is. */
const POSITION = [...ACCEPTED.map(({ name }) => name), 'newer', 'first', 'q', 'from']

export function listAddress(filters: Filters, more: Record<string, string> = {}): string {
  return withFilters('/animals', filters, more)
}

export function withFilters(path: string, filters: Filters, more: Record<string, string> = {}): string {
  return withQuery(path, { ...Object.fromEntries(new URLSearchParams(filterQuery(filters))), ...more })
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

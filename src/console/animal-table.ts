// The table of animals that the list and the search show, and the addresses that lead from it and back.
import { filterQuery, type Filters, LIST_PARAMETERS } from '../contract/list-query.ts'
import { FIELD_NAMES, type FieldName, FIELDS, type Pet } from '../contract/pets.ts'
import { inWords, labelOf } from './animal-form.ts'
import { html, type Html, isolated } from '../http/html.ts'

/** The parameters of listPets that the console accepts too: all except for the size of a page. */
export const ACCEPTED = LIST_PARAMETERS.filter(({ name }) => name !== 'limit')

/** The parameters that tell where in the list or search the visitor is. */
const POSITION = [...ACCEPTED.map(({ name }) => name), 'newer', 'q', 'from']

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

function withQuery(path: string, parameters: Record<string, string>): string {
  const query = new URLSearchParams(parameters).toString()
  return query === '' ? path : `${path}?${query}`
}

export function animalTable(caption: string, pets: readonly Pet[], raw: URLSearchParams): Html {
  return html`<table class="table animals">
    <caption class="visually-hidden">${caption}</caption>
    <thead><tr>
      ${LISTED.map((name) => html`<th scope="col" class="${alignment(name)}">${labelOf(name)}</th>`)}
      <th scope="col" class="number">Id</th>
    </tr></thead>
    <tbody>${pets.map(
      (pet) => html`<tr ${String(pet.id) === raw.get('added') && html`class="fresh"`}>
        ${LISTED.map((name) => cell(pet, name, raw))}<td class="number">${pet.id}</td></tr>`,
    )}</tbody>
  </table>`
}

/** Name and status first, then the rest. */
const LISTED: readonly FieldName[] = [...new Set<FieldName>(['name', 'status', ...FIELD_NAMES])]

function cell(pet: Pet, name: FieldName, raw: URLSearchParams): Html {
  const words = inWords(pet, name)
  if (name === 'name')
    return html`<th scope="row"><a href="${keepingPosition(`/animals/${pet.id}`, raw)}">${isolated(words)}</a></th>`
  if (name === 'status') return html`<td><span class="mark ${pet.status}">${words}</span></td>`
  return html`<td class="${alignment(name)}">${words}</td>`
}

function alignment(name: FieldName): string {
  return FIELDS[name].schema.type === 'integer' ? 'number' : ''
}

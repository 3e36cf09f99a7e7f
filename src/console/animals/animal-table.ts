// The table of animals that the list and the search show. On a phone each row is a block of two lines (console.css).
import type { FieldName, Pet } from '../../contract/pets.ts'
import { keepingPosition, type Sort, SORTS } from './animal-addresses.ts'
import { type Asked, type Listed, readAll, sortsOf } from './animal-list.ts'
import { inWords, labelOf, SHOWN_FIELDS } from '../../contract/pet-words.ts'
import { readReservations } from './animal-history.ts'
import { manyBar, pick, PICK_ALL, selectionOf } from './animal-many.ts'
import { listSteps, rowSteps, type Taken } from './animal-steps.ts'
import { html, type Html, isolated } from '../../http/html/html.ts'
import { shortTime } from '../every-page/times.ts'
import type { Addition } from '../../store/pet-columns.ts'
import type { MemberVisit } from '../every-page/visit.ts'

/** The link of a name covers its row, except for the buttons of the next steps. `range` says which of how many are shown. */
export async function animalTable(
  visit: MemberVisit,
  asked: Asked,
  listed: Listed,
  range: string,
  taken?: Taken,
): Promise<Html> {
  const { pets, total, sort } = listed
  const sorts = sortsOf(asked, listed)
  const all = visit.query.get('select') === 'all' ? await readAll(visit, asked) : undefined
  const selection = all && selectionOf(all.pets)
  const additions = await visit.store.pets.additions(pets.map(({ id }) => id))
  const reserved = await readReservations(visit, pets)
  const position = keepingPosition('', visit.query)
  const isFresh = ({ id }: Pet) => id === taken?.pet.id || visit.query.get('added') === String(id)
  const parts = { visit, position, reserved, isTicked: selection !== undefined }
  const row = (pet: Pet) => html`<tr ${isFresh(pet) && html`class="fresh"`}>
    ${SHOWN_FIELDS.map((name) => cell(pet, name, parts))}${addedCell(additions.get(pet.id), visit)}<td class="number">${pet.id}</td>
    <td class="step-cell">${rowSteps(pet, position, pet.id === taken?.pet.id ? taken.undo : undefined)}</td></tr>`
  const heading = (words: string, next: Sort) => (sorts[next] ? html`<a href="${sorts[next]}">${words}</a>` : words)
  return html`${listSteps(visit)}<table class="table animals pickable">
    <caption class="visually-hidden">Animals, ${SORTS[sort].toLowerCase()}</caption>
    <thead><tr>
      ${SHOWN_FIELDS.map((name) => html`<th scope="col" ${name === 'name' && ARIA_SORT[sort].name}>${name === 'name' ? html`${selection === undefined && PICK_ALL}${heading(labelOf(name), 'name')}` : labelOf(name)}</th>`)}
      <th scope="col" ${ARIA_SORT[sort].added}>${heading('Added', sort === 'newest' ? 'oldest' : 'newest')}</th>
      <th scope="col" class="number">Id</th><th scope="col" class="range"><span class="visually-hidden">Next step: </span>${range}</th>
    </tr></thead>
    <tbody>${pets.map(row)}</tbody>
  </table>${manyBar(visit, pets.length, total, selection)}`
}

const ARIA_SORT: Record<Sort, { name?: Html; added?: Html }> = {
  newest: { added: html`aria-sort="descending"` },
  oldest: { added: html`aria-sort="ascending"` },
  name: { name: html`aria-sort="ascending"` },
}

function addedCell(addition: Addition | undefined, { now }: MemberVisit): Html {
  return html`<td class="added-cell">${addition ? shortTime(addition.at, now) : '–'}</td>`
}

/** `reserved` says by whom and since when, by id. */
type RowParts = { visit: MemberVisit; position: string; isTicked: boolean; reserved: ReadonlyMap<bigint, Html> }

function cell(pet: Pet, name: FieldName, { visit, position, isTicked, reserved }: RowParts): Html {
  const words = inWords(pet, name, visit.categories)
  if (name === 'name')
    return html`<th scope="row"><a href="/animals/${pet.id}${position}">${isolated(words)}</a>${pick(pet, isTicked)}</th>`
  const by = reserved.get(pet.id)
  if (name === 'status')
    return html`<td class="status-cell"><span class="mark ${pet.status}">${words}</span>${by && html`<small>${by}</small>`}</td>`
  return html`<td ${name === 'categoryId' && html`class="category-cell"`}>${isolated(words)}</td>`
}

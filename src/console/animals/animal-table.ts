// The table of animals that the list and the search show. On a phone each row is a block of two lines (console.css).
import type { FieldName, Pet } from '../../contract/pets.ts'
import { keepingPosition, type Sort, SORTS } from './animal-addresses.ts'
import { type Asked, type Listed, readAll, sortsOf } from './animal-list.ts'
import { inWords, labelOf, SHOWN_FIELDS } from '../../contract/pet-words.ts'
import { readReservations } from './animal-history.ts'
import { manyBar, pick, PICK_ALL } from './animal-many.ts'
import { listSteps, rowSteps, type Taken } from './animal-steps.ts'
import { html, type Html, isolated } from '../../http/html/html.ts'
import { shortTime } from '../every-page/times.ts'
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
  const selected = visit.query.get('select') === 'all' ? (await readAll(visit, asked))?.pets : undefined
  const additions = await visit.store.pets.additions(pets.map(({ id }) => id))
  const reserved = await readReservations(visit, pets)
  const position = keepingPosition('', visit.query)
  const row = (pet: Pet) => {
    const { id, status } = pet
    const isFresh = id === taken?.pet.id || visit.query.get('added') === String(id)
    const [addition, by] = [additions.get(id), reserved.get(id)]
    const cell = (name: FieldName) => {
      const words = inWords(pet, name, visit.categories)
      if (name === 'name')
        return html`<th scope="row"><a href="/animals/${id}${position}">${isolated(words)}</a>${pick(pet, selected !== undefined)}</th>`
      if (name === 'status')
        return html`<td class="status-cell"><span class="mark ${status}">${words}</span>${by && html`<small>${by}</small>`}</td>`
      return html`<td ${name === 'categoryId' && html`class="category-cell"`}>${isolated(words)}</td>`
    }
    return html`<tr ${isFresh && html`class="fresh"`}>
    ${SHOWN_FIELDS.map(cell)}<td class="added-cell">${addition ? shortTime(addition.at, visit.now) : '–'}</td><td class="number">${id}</td>
    <td class="step-cell">${rowSteps(pet, position, id === taken?.pet.id ? taken.undo : undefined)}</td></tr>`
  }
  /** A heading that leads to the order `next`; `order` is that of the list, if it is by this column. */
  const heading = (words: string, next: Sort, order: 'ascending' | 'descending' | false) =>
    html`<th scope="col" ${order && html`aria-sort="${order}"`}>${next === 'name' && selected === undefined && PICK_ALL}${sorts[next] ? html`<a href="${sorts[next]}">${words}</a>` : words}</th>`
  const added = sort === 'newest' ? 'descending' : sort === 'oldest' && 'ascending'
  return html`${listSteps(visit)}<table class="table animals pickable">
    <caption class="visually-hidden">Animals, ${SORTS[sort].toLowerCase()}</caption>
    <thead><tr>
      ${SHOWN_FIELDS.map((name) => (name === 'name' ? heading(labelOf(name), name, sort === name && 'ascending') : html`<th scope="col">${labelOf(name)}</th>`))}
      ${heading('Added', sort === 'newest' ? 'oldest' : 'newest', added)}
      <th scope="col" class="number">Id</th><th scope="col" class="range"><span class="visually-hidden">Next step: </span>${range}</th>
    </tr></thead>
    <tbody>${pets.map(row)}</tbody>
  </table>${manyBar(visit, pets.length, total, selected)}`
}

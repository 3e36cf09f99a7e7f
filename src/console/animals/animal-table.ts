// The table of animals that the list and the search show. On a phone each row is a block of two lines (console.css).
import { type FieldName, FIELDS, type Pet } from '../../contract/pets.ts'
import { keepingPosition } from './animal-addresses.ts'
import { inWords, labelOf, SHOWN_FIELDS } from '../../contract/pet-words.ts'
import { manyBar, pick } from './animal-many.ts'
import { stepForms, type Taken } from './animal-steps.ts'
import { html, type Html, isolated } from '../../http/html/html.ts'
import type { MemberVisit } from '../every-page/visit.ts'

/**
 * The link of a name covers its row, except for the form of the next step. The animal of the step that was just taken keeps its place,
 * also if it is no longer among `found`.
 */
export function animalTable(caption: string, found: readonly Pet[], visit: MemberVisit, taken?: Taken): Html {
  const isFresh = ({ id }: Pet) => id === taken?.pet.id || visit.query.get('added') === String(id)
  const pets = taken === undefined || found.some(isFresh) ? found : withOne(found, taken.pet)
  return html`<table class="table animals pickable">
    <caption class="visually-hidden">${caption}</caption>
    <thead><tr>
      ${SHOWN_FIELDS.map((name) => html`<th scope="col" class="${alignment(name)}">${labelOf(name)}</th>`)}
      <th scope="col" class="number">Id</th><th scope="col"><span class="visually-hidden">Next step</span></th>
    </tr></thead>
    <tbody>${pets.map(
      (pet) => html`<tr ${isFresh(pet) && html`class="fresh"`}>
        ${SHOWN_FIELDS.map((name) => cell(pet, name, visit))}<td class="number" data-label="Id">${pet.id}</td>
        <td class="step-cell">${stepForms(visit, pet, 'list', pet.id === taken?.pet.id && taken.undo)}</td></tr>`,
    )}</tbody>
  </table>${manyBar(visit)}`
}

function withOne(found: readonly Pet[], pet: Pet): Pet[] {
  const older = found.findIndex(({ id }) => id < pet.id)
  return found.toSpliced(older < 0 ? found.length : older, 0, pet)
}

function cell(pet: Pet, name: FieldName, { query, categories }: MemberVisit): Html {
  const words = inWords(pet, name, categories)
  if (name === 'name')
    return html`<th scope="row"><a href="${keepingPosition(`/animals/${pet.id}`, query)}">${isolated(words)}</a>${pick(pet)}</th>`
  if (name === 'status') return html`<td class="status-cell"><span class="mark ${pet.status}">${words}</span></td>`
  const isNamed = name === 'categoryId' && categories.names.has(pet.categoryId)
  return html`<td class="${alignment(name)}" ${!isNamed && html`data-label="${labelOf(name)}"`}>${isolated(words)}</td>`
}

function alignment(name: FieldName): string {
  return FIELDS[name].schema.type === 'integer' && name !== 'categoryId' ? 'number' : ''
}

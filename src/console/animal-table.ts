// The table of animals that the list and the search show. On a phone each row is a block of two lines (console.css).
import { type FieldName, FIELDS, type Pet } from '../contract/pets.ts'
import { keepingPosition } from './animal-addresses.ts'
import { inWords, labelOf, SHOWN_FIELDS } from './animal-form.ts'
import { stepForm } from './animal-steps.ts'
import { html, type Html, isolated } from '../http/html.ts'
import type { MemberVisit } from './visit.ts'

/** The link of a name covers its row, except for the form of the next step. */
export function animalTable(caption: string, pets: readonly Pet[], visit: MemberVisit): Html {
  const isFresh = ({ id }: Pet) => ['added', 'step'].some((name) => visit.query.get(name) === String(id))
  return html`<table class="table animals">
    <caption class="visually-hidden">${caption}</caption>
    <thead><tr>
      ${SHOWN_FIELDS.map((name) => html`<th scope="col" class="${alignment(name)}">${labelOf(name)}</th>`)}
      <th scope="col" class="number">Id</th><th scope="col"><span class="visually-hidden">Next step</span></th>
    </tr></thead>
    <tbody>${pets.map(
      (pet) => html`<tr ${isFresh(pet) && html`class="fresh"`}>
        ${SHOWN_FIELDS.map((name) => cell(pet, name, visit))}<td class="number" data-label="Id">${pet.id}</td>
        <td class="step-cell">${stepForm(visit, pet, 'list')}</td></tr>`,
    )}</tbody>
  </table>`
}

function cell(pet: Pet, name: FieldName, { query, categories }: MemberVisit): Html {
  const words = inWords(pet, name, categories)
  if (name === 'name')
    return html`<th scope="row"><a href="${keepingPosition(`/animals/${pet.id}`, query)}">${isolated(words)}</a></th>`
  if (name === 'status') return html`<td class="status-cell"><span class="mark ${pet.status}">${words}</span></td>`
  return html`<td class="${alignment(name)}" data-label="${labelOf(name)}">${isolated(words)}</td>`
}

function alignment(name: FieldName): string {
  return FIELDS[name].schema.type === 'integer' && name !== 'categoryId' ? 'number' : ''
}

// Removes an animal that was entered by mistake, for managers, after a page that shows what it is.
import { int64FromText } from '../contract/int64.ts'
import type { Pet } from '../contract/pets.ts'
import { petSubject } from '../store/account-store.ts'
import { fingerprintOf } from '../store/idempotency.ts'
import { html, type Html, isolated } from '../http/html.ts'
import { withAnimal } from './animal.ts'
import { keepingPosition } from './animal-addresses.ts'
import { inWords, labelOf, SHOWN_FIELDS } from './animal-form.ts'
import { form, hidden } from './forms.ts'
import { notFoundPage } from './problem-pages.ts'
import { type ConsoleRoute, forManagers, type HtmlPage, type MemberVisit, type Outcome } from './visit.ts'

export const animalRemovalRoutes: readonly ConsoleRoute[] = [
  forManagers(
    'GET',
    '/animals/{id}/remove',
    withAnimal(async (visit, pet) => confirmPage(visit, pet)),
  ),
  forManagers('POST', '/animals/{id}/remove', withAnimal(remove)),
]

const shownOf = (pet: Pet) => fingerprintOf(pet).toString('hex')
const describe = (pet: Pet, { categories }: MemberVisit) =>
  SHOWN_FIELDS.map((name) => `${labelOf(name)}: ${inWords(pet, name, categories)}`).join('; ')

function confirmPage(visit: MemberVisit, pet: Pet, isChanged = false): HtmlPage {
  const { query } = visit
  return {
    title: 'Remove an animal',
    section: 'animals',
    ...(isChanged && { status: 409 }),
    body: html`<div class="narrow">
      <h1>Remove ${isolated(pet.name)} (${pet.id})?</h1>
      ${isChanged && html`<p class="notice warn" role="alert"><strong>Nothing was removed.</strong> The animal was changed meanwhile. This is what it is now.</p>`}
      <p>${isolated(describe(pet, visit))}</p>
      <p>Only for an animal that was entered by mistake: it can’t be brought back, and its id is never used again. Its history stays.</p>
      ${form(visit, {
        action: keepingPosition(`/animals/${pet.id}/remove`, query),
        submit: 'Remove animal',
        danger: true,
        cancel: keepingPosition(`/animals/${pet.id}`, query),
        fields: hidden('shown', shownOf(pet)),
      })}
    </div>`,
  }
}

/** Removes the animal if it still is what the page showed. */
async function remove(visit: MemberVisit, pet: Pet): Promise<Outcome> {
  const { store, who, now: at, query } = visit
  if (visit.form.get('shown') !== shownOf(pet)) return confirmPage(visit, pet, true)
  const [accountId, subject, detail] = [who.account.id, petSubject(pet), describe(pet, visit)]
  const event = { at, accountId, action: 'pet.removed', via: 'console', subject, detail } as const
  const removed = await store.pets.remove(pet.id, pet, event)
  if (removed.outcome === 'conflict') return confirmPage(visit, removed.pet, true)
  // Somebody else was faster, or the form was sent twice.
  if (removed.outcome === 'missing') return notFoundPage(visit)
  return { redirect: keepingPosition('/animals', query, { removed: String(pet.id) }) }
}

/** Confirms, above the list, the removal that the address names. */
export async function removedNotice({ query, store }: MemberVisit): Promise<Html | undefined> {
  const id = int64FromText(query.get('removed') ?? '')
  const [newest] = id === undefined ? [] : await store.accounts.changesOf(id, 1)
  if (newest?.action !== 'pet.removed') return undefined
  return html`<p class="notice good" role="status">${isolated(newest.subject)} was removed.</p>`
}

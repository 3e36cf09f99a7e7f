// Removes an animal that was entered by mistake, for managers, after a page that shows what it is.
import type { Pet } from '../contract/pets.ts'
import { petSubject } from '../store/account-store.ts'
import { html, isolated } from '../http/html.ts'
import { withAnimal } from './animal.ts'
import { keepingPosition } from './animal-addresses.ts'
import { inWords, labelOf, SHOWN_FIELDS } from './animal-form.ts'
import { form, hidden } from './forms.ts'
import { forManagers } from './managers.ts'
import { notFoundPage } from './problem-pages.ts'
import type { ConsoleRoute, HtmlPage, MemberVisit, Outcome } from './visit.ts'

export const animalRemovalRoutes: readonly ConsoleRoute[] = [
  forManagers('GET', '/animals/{id}/remove', withAnimal(confirmPage)),
  forManagers('POST', '/animals/{id}/remove', withAnimal(remove)),
]

function describe({ categories }: MemberVisit, pet: Pet): string {
  return SHOWN_FIELDS.map((name) => `${labelOf(name)}: ${inWords(pet, name, categories)}`).join('; ')
}

function confirmPage(visit: MemberVisit, pet: Pet, isChanged = false): HtmlPage {
  const shown = describe(visit, pet)
  return {
    title: 'Remove an animal',
    section: 'animals',
    ...(isChanged && { status: 409 }),
    body: html`<div class="narrow">
      <h1>Remove ${isolated(pet.name)} (${pet.id})?</h1>
      ${isChanged && html`<p class="notice warn" role="alert"><strong>Nothing was removed.</strong> The animal was changed meanwhile. This is what it is now.</p>`}
      <p>${isolated(shown)}</p>
      <p>Only for an animal that was entered by mistake: it can’t be brought back, and its id is never used again. Its history stays.</p>
      ${form(visit, {
        action: keepingPosition(`/animals/${pet.id}/remove`, visit.query),
        submit: 'Remove animal',
        danger: true,
        cancel: keepingPosition(`/animals/${pet.id}`, visit.query),
        fields: hidden('shown', JSON.stringify(shown)),
      })}
    </div>`,
  }
}

/** Removes the animal if it still is what the page showed. */
async function remove(visit: MemberVisit, pet: Pet): Promise<Outcome> {
  const detail = describe(visit, pet)
  if (visit.form.get('shown') !== JSON.stringify(detail)) return confirmPage(visit, pet, true)
  const by = { at: visit.now, accountId: visit.who.account.id, via: 'console' }
  const removed = await visit.store.pets.remove(pet.id, pet, {
    ...by,
    action: 'pet.removed',
    subject: petSubject(pet),
    detail,
  })
  if (removed.outcome === 'conflict') return confirmPage(visit, removed.pet, true)
  // Somebody else was faster, or the form was sent twice.
  if (removed.outcome === 'missing') return notFoundPage(visit)
  return { redirect: keepingPosition('/animals', visit.query, { removed: 'yes' }) }
}

// Adding an animal by hand, with the API's own checks.
import { hash } from 'node:crypto'
import { newToken } from '../accounts/sessions.ts'
import type { NewPet } from '../contract/pets.ts'
import { FieldProblem, InvalidFields } from '../contract/errors.ts'
import { fingerprintOf, idempotencyFor } from '../store/idempotency.ts'
import { animalFields, readAnimal } from './animal-form.ts'
import { categoriesInUse } from './categories.ts'
import { form, hidden, type Problems, problemSummary } from './forms.ts'
import { html } from './html.ts'
import { type ConsoleRoute, forMembers, type MemberVisit, type Outcome, type HtmlPage } from './visit.ts'

export const addAnimalRoutes: readonly ConsoleRoute[] = [
  forMembers('GET', '/animals/new', (visit) => addPage(visit)),
  forMembers('POST', '/animals/new', add),
]

async function addPage(visit: MemberVisit, problems: Problems = []): Promise<HtmlPage> {
  const typed = (name: string) => visit.form.get(name) ?? ''
  return {
    title: 'Add an animal',
    section: 'animals',
    ...(problems.length > 0 && { status: 400 }),
    body: html`<div class="narrow">
      <h1>Add an animal</h1>
      ${problemSummary(problems)}
      ${form(visit, {
        action: '/animals/new',
        submit: 'Add animal',
        cancel: '/animals',
        fields: html`${hidden('formId', typed('formId') || newToken())}${animalFields(typed, problems, await categoriesInUse(visit.store))}`,
      })}
    </div>`,
  }
}

async function add(visit: MemberVisit): Promise<Outcome> {
  const { form: typed, store, who, now } = visit
  const parsed = readAnimal(typed)
  if (parsed instanceof InvalidFields) return addPage(visit, parsed.problems)
  const key = idempotencyKey(typed.get('formId') ?? '', parsed)
  const created = await store.pets.create(parsed, idempotencyFor(who.account.id, key, parsed, now))
  if ('pet' in created) return { redirect: `/animals?added=${created.pet.id}` }
  return addPage(visit, [new FieldProblem('', 'This form is already being processed; send it again in a few seconds.')])
}

/** A form sent twice adds one animal; if the user goes back and changes it, it adds the other animal that was meant. */
function idempotencyKey(formId: string, newPet: NewPet): string {
  return `console:${hash('sha256', `${formId} ${fingerprintOf(newPet).toString('hex')}`)}`
}

// The pages of one animal: one adds it, the other changes its fields. If the animal was changed after the form was opened,
// both changes are kept, and a field that both changed is asked about (animal-merge.ts).
import { hash } from 'node:crypto'
import { newToken } from '../accounts/sessions.ts'
import { int64FromText } from '../contract/int64.ts'
import { FIELD_NAMES, type NewPet, type Pet } from '../contract/pets.ts'
import { FieldProblem, InvalidFields } from '../contract/errors.ts'
import { type AuditEvent, petSubject } from '../store/account-store.ts'
import { fingerprintOf, idempotencyFor } from '../store/idempotency.ts'
import { animalField, categoriesInUse, inWords, labelOf, readAnimal } from './animal-form.ts'
import { history, readChanges } from './animal-history.ts'
import {
  carriedFields,
  meanwhileNotice,
  meanwhileQuery,
  type Merge,
  mergedFields,
  mergeForm,
  savedNotice,
  unansweredProblems,
} from './animal-merge.ts'
import { keepingPosition } from './animal-table.ts'
import { form, hidden, type Problems, problemSummary } from './forms.ts'
import { html, isolated, withVisibleControls } from '../http/html.ts'
import { notFoundPage } from './problem-pages.ts'
import { type ConsoleRoute, forMembers, type HtmlPage, type MemberVisit, type Outcome } from './visit.ts'

export const animalRoutes: readonly ConsoleRoute[] = [
  forMembers('GET', '/animals/new', (visit) => addPage(visit)),
  forMembers('POST', '/animals/new', add, { keepsTyped: true }),
  forMembers(
    'GET',
    '/animals/{id}',
    // The form has fields only if it was typed before a sign-in.
    withAnimal((visit, pet) => animalPage(visit, pet, mergeForm(visit.form, pet))),
  ),
  forMembers('POST', '/animals/{id}', withAnimal(change), { keepsTyped: true }),
]

async function animalPage(visit: MemberVisit, pet: Pet, merge: Merge, invalid: Problems = []): Promise<HtmlPage> {
  const [changes, categories] = await Promise.all([readChanges(visit, pet.id), categoriesInUse(visit.store)])
  const problems = [...unansweredProblems(merge), ...invalid]
  const back = keepingPosition('/animals', visit.query)
  const page = keepingPosition(`/animals/${pet.id}`, visit.query)
  return {
    title: withVisibleControls(pet.name),
    section: 'animals',
    ...(problems.length > 0 && { status: 400 }),
    ...(merge.asked.length > 0 && { status: 409 }),
    body: html`<div class="narrow">
      <h1>${isolated(pet.name)}</h1>
      <p class="quiet-text">Animal ${pet.id}</p>
      ${savedNotice(visit.query, pet, back)}
      ${meanwhileNotice(merge, pet, changes[0], page)}${problemSummary(problems)}
      ${form(visit, {
        action: page,
        submit: 'Save',
        cancel: back,
        fields: html`${carriedFields(merge, pet)}
          ${mergedFields(merge, pet, changes[0], { value: (name) => merge.values[name], problems, categories })}`,
      })}
      ${history(changes)}
    </div>`,
  }
}

/** The query that makes `savedNotice` say so. */
const SAVED = { changed: 'yes' }

/** Saves what was changed in the form. What others changed meanwhile stays, and the page that follows names it. */
async function change(visit: MemberVisit, pet: Pet): Promise<Outcome> {
  const merge = mergeForm(visit.form, pet)
  const wanted = readAnimal((name) => merge.values[name], pet)
  if (wanted instanceof InvalidFields) return animalPage(visit, pet, merge, wanted.problems)
  if (merge.asked.length > 0) return animalPage(visit, pet, merge)
  const detail = difference(pet, wanted)
  const next = (more: Record<string, string>) => ({
    redirect: keepingPosition(`/animals/${pet.id}`, visit.query, { ...more, ...meanwhileQuery(merge) }),
  })
  if (detail === '') return next(merge.isStoredAlready ? SAVED : {})
  const { id: accountId } = visit.who.account
  const subject = petSubject(pet)
  const event: AuditEvent = { at: visit.now, accountId, action: 'pet.changed', via: 'console', subject, detail }
  const updated = await visit.store.pets.update(pet.id, pet, wanted, event)
  if (updated.outcome === 'missing') return notFoundPage(visit)
  // Changed since it was read: merges again, with what is stored now.
  return updated.outcome === 'conflict' ? change(visit, updated.pet) : next(SAVED)
}

/** Describes each changed field, such as "Status: Pending → Sold"; returns an empty text if there is none. */
function difference(from: NewPet, to: NewPet): string {
  return FIELD_NAMES.filter((name) => from[name] !== to[name])
    .map((name) => `${labelOf(name)}: ${inWords(from, name)} → ${inWords(to, name)}`)
    .join('; ')
}

/** Looks up the animal that the address names, for a page about it. */
function withAnimal(handle: (visit: MemberVisit, pet: Pet) => Promise<Outcome>) {
  return async (visit: MemberVisit): Promise<Outcome> => {
    const id = int64FromText(visit.call.parameters['id']!)
    const pet = id === undefined ? undefined : await visit.store.pets.get(id)
    return pet === undefined ? notFoundPage(visit) : handle(visit, pet)
  }
}

async function addPage(visit: MemberVisit, problems: Problems = []): Promise<HtmlPage> {
  const value = (name: string) => visit.form.get(name) ?? ''
  const parts = { value, problems, categories: await categoriesInUse(visit.store) }
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
        fields: html`${hidden('formId', value('formId') || newToken())}${FIELD_NAMES.map((name) => animalField(name, parts))}`,
      })}
    </div>`,
  }
}

async function add(visit: MemberVisit): Promise<Outcome> {
  const { form: typed, store, who, now } = visit
  const parsed = readAnimal((name) => typed.get(name) ?? '')
  if (parsed instanceof InvalidFields) return addPage(visit, parsed.problems)
  const key = idempotencyKey(typed.get('formId') ?? '', parsed)
  const created = await store.pets.create(parsed, idempotencyFor(who.account.id, key, parsed, now))
  if ('pet' in created) return { redirect: `/animals?added=${created.pet.id}` }
  return addPage(visit, [new FieldProblem('', 'This form is already being processed; send it again in a few seconds.')])
}

/** A form that is sent twice adds one animal. If the visitor goes back and edits the form, it adds another animal. */
function idempotencyKey(formId: string, newPet: NewPet): string {
  return `console:${hash('sha256', `${formId} ${fingerprintOf(newPet).toString('hex')}`)}`
}

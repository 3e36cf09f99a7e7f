// One animal: add it, correct its name or category, change its status. If somebody else changed it meanwhile, nothing is
// overwritten: the page shows what is stored now, and asks.
import { hash } from 'node:crypto'
import { newToken } from '../accounts/sessions.ts'
import { int64FromText } from '../contract/int64.ts'
import { FIELD_NAMES, type FieldName, type NewPet, type Pet } from '../contract/pets.ts'
import { FieldProblem, InvalidFields } from '../contract/errors.ts'
import { type AuditEvent, petSubject } from '../store/account-store.ts'
import { fingerprintOf, idempotencyFor } from '../store/idempotency.ts'
import { animalFields, categoriesInUse, inWords, labelOf, readAnimal } from './animal-form.ts'
import { type Change, history, readChanges, whoChanged } from './animal-history.ts'
import { keepingPlace } from './animal-table.ts'
import { form, hidden, type Problems, problemSummary } from './forms.ts'
import { html, type Html, isolated, withVisibleControls } from './html.ts'
import { notFoundPage } from './problem-pages.ts'
import { type ConsoleRoute, forMembers, type HtmlPage, type MemberVisit, type Outcome, param } from './visit.ts'

export const animalRoutes: readonly ConsoleRoute[] = [
  forMembers('GET', '/animals/new', (visit) => addPage(visit)),
  forMembers('POST', '/animals/new', add, { keepsTyped: true }),
  forMembers(
    'GET',
    '/animals/{id}',
    withAnimal((visit, pet) => animalPage(visit, pet, { conflict: visit.isRestored && isOutdated(visit, pet) })),
  ),
  forMembers('POST', '/animals/{id}', withAnimal(change), { keepsTyped: true }),
]

interface Shown {
  problems?: Problems
  /** Whether the animal was changed since the form was made. */
  conflict?: boolean
}

async function animalPage(
  visit: MemberVisit,
  pet: Pet,
  { problems = [], conflict = false }: Shown = {},
): Promise<HtmlPage> {
  const typed = (name: FieldName) => visit.form.get(name) ?? String(pet[name] ?? '')
  const [changes, categories] = await Promise.all([readChanges(visit, pet.id), categoriesInUse(visit.store)])
  const back = keepingPlace('/animals', visit.query)
  return {
    title: withVisibleControls(pet.name),
    section: 'animals',
    ...(problems.length > 0 && { status: 400 }),
    ...(conflict && { status: 409 }),
    body: html`<div class="narrow">
      <h1>${isolated(pet.name)}</h1>
      <p class="quiet-text">Animal ${pet.id}</p>
      ${visit.query.has('changed') && html`<p class="notice good" role="status">Saved. <a href="${back}">Back to the list</a></p>`}
      ${conflict && conflictNotice(visit, pet, changes[0])}${problemSummary(problems)}
      ${form(visit, {
        action: keepingPlace(`/animals/${pet.id}`, visit.query),
        submit: conflict ? 'Save anyway' : 'Save',
        cancel: back,
        fields: html`${hidden('version', versionOf(pet))}
          ${animalFields(typed, problems, categories)}`,
      })}
      ${history(changes)}
    </div>`,
  }
}

/** Tells the form's version of an animal from a later one. */
function versionOf(pet: Pet): string {
  return fingerprintOf(pet).toString('base64url')
}

/** Whether the animal was changed since the form was made. */
function isOutdated({ form: typed }: MemberVisit, pet: Pet): boolean {
  return typed.get('version') !== versionOf(pet)
}

function conflictNotice(visit: MemberVisit, pet: Pet, last: Change | undefined): Html {
  return html`<div class="notice warn" role="alert">
    <p><strong>${whoChanged(last)}</strong> Nothing was overwritten. Stored now:</p>
    <ul>${FIELD_NAMES.map((name) => html`<li>${labelOf(name)}: ${isolated(inWords(pet, name))}</li>`)}</ul>
    <p>Below is what you typed. Save it anyway, or <a href="${keepingPlace(`/animals/${pet.id}`, visit.query)}">start from what is stored</a>.</p>
  </div>`
}

async function change(visit: MemberVisit, pet: Pet): Promise<Outcome> {
  const wanted = readAnimal(visit.form)
  if (wanted instanceof InvalidFields) return animalPage(visit, pet, { problems: wanted.problems })
  if (isOutdated(visit, pet)) return animalPage(visit, pet, { conflict: true })
  // A text field drops line breaks: a name that has some is not changed by leaving it alone.
  if (wanted.name === pet.name.replaceAll(/[\r\n]/g, '')) wanted.name = pet.name
  const detail = difference(pet, wanted)
  const page = `/animals/${pet.id}`
  if (detail === '') return { redirect: keepingPlace(page, visit.query) }
  const updated = await visit.store.pets.update(pet.id, pet, wanted, changeEvent(visit, pet, detail))
  if (updated.outcome === 'missing') return notFoundPage(visit)
  if (updated.outcome === 'conflict') return animalPage(visit, updated.pet, { conflict: true })
  return { redirect: keepingPlace(page, visit.query, { changed: 'yes' }) }
}

function difference(from: NewPet, to: NewPet): string {
  return FIELD_NAMES.filter((name) => from[name] !== to[name])
    .map((name) => `${labelOf(name)}: ${inWords(from, name)} → ${inWords(to, name)}`)
    .join('; ')
}

function changeEvent({ who, now }: MemberVisit, pet: Pet, detail: string): AuditEvent {
  return {
    at: now,
    accountId: who.account.id,
    action: 'pet.changed',
    via: 'console',
    subject: petSubject(pet),
    detail,
  }
}

function withAnimal(handle: (visit: MemberVisit, pet: Pet) => Promise<Outcome>) {
  return async (visit: MemberVisit): Promise<Outcome> => {
    const id = int64FromText(param(visit, 'id'))
    const pet = id === undefined ? undefined : await visit.store.pets.get(id)
    return pet === undefined ? notFoundPage(visit) : handle(visit, pet)
  }
}

/** Adds an animal by hand, with the API's own checks. */
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

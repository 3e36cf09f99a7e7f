// The pages of one animal: one adds it, the other changes its fields. If the animal was changed after the form was opened,
// the form overwrites nothing: the page shows what is stored now, and lets the visitor decide.
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
import { type ConsoleRoute, forMembers, type HtmlPage, type MemberVisit, type Outcome } from './visit.ts'

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

/** `conflict`: the animal was changed since the form was opened. */
async function animalPage(
  visit: MemberVisit,
  pet: Pet,
  { problems = [], conflict = false }: { problems?: Problems; conflict?: boolean },
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

/** Returns a text that changes when the animal is changed. The form sends it back. */
function versionOf(pet: Pet): string {
  return fingerprintOf(pet).toString('base64url')
}

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
  const conflict = isOutdated(visit, pet)
  // The page has the version of what is stored now, so it must show a conflict also beside invalid fields.
  if (wanted instanceof InvalidFields) return animalPage(visit, pet, { problems: wanted.problems, conflict })
  if (conflict) return animalPage(visit, pet, { conflict })
  // Browsers drop line breaks in a text field. A name with line breaks that was not edited must stay as it is.
  if (wanted.name === pet.name.replaceAll(/[\r\n]/g, '')) wanted.name = pet.name
  const detail = difference(pet, wanted)
  const page = `/animals/${pet.id}`
  if (detail === '') return { redirect: keepingPlace(page, visit.query) }
  const { id: accountId } = visit.who.account
  const subject = petSubject(pet)
  const event: AuditEvent = { at: visit.now, accountId, action: 'pet.changed', via: 'console', subject, detail }
  const updated = await visit.store.pets.update(pet.id, pet, wanted, event)
  if (updated.outcome === 'missing') return notFoundPage(visit)
  if (updated.outcome === 'conflict') return animalPage(visit, updated.pet, { conflict: true })
  return { redirect: keepingPlace(page, visit.query, { changed: 'yes' }) }
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

/** A form that is sent twice adds one animal. If the visitor goes back and edits the form, it adds another animal. */
function idempotencyKey(formId: string, newPet: NewPet): string {
  return `console:${hash('sha256', `${formId} ${fingerprintOf(newPet).toString('hex')}`)}`
}

// The pages of one animal: one adds it, the other shows its facts and its timeline, and changes its fields. If the animal was changed after the form was opened,
// both changes are kept, and a field that both changed is asked about (animal-merge.ts).
import { hash } from 'node:crypto'
import { newToken } from '../accounts/sessions.ts'
import { int64FromText } from '../contract/int64.ts'
import { FIELD_NAMES, type FieldName, isSamePet, type NewPet, type Pet } from '../contract/pets.ts'
import { FieldProblem, InvalidFields } from '../contract/errors.ts'
import { fingerprintOf, idempotencyFor } from '../store/idempotency.ts'
import { keepingPosition, listAddress } from './animal-addresses.ts'
import { animalField, inWords, labelOf, readAnimal, SHOWN_FIELDS } from './animal-form.ts'
import { readHistory, saveChange, timeline } from './animal-history.ts'
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
import { overtakenNotice, stepForm, stepNotice, takeStep } from './animal-steps.ts'
import { form, hidden, type Problems, problemSummary } from './forms.ts'
import { html, type Html, isolated, withVisibleControls } from '../http/html.ts'
import { notFoundPage } from './problem-pages.ts'
import { type ConsoleRoute, forMembers, type HtmlPage, isManager, type MemberVisit, type Outcome } from './visit.ts'

export const animalRoutes: readonly ConsoleRoute[] = [
  forMembers('GET', '/animals/new', (visit) => addPage(visit)),
  forMembers('POST', '/animals/new', add, { keepsTyped: true }),
  forMembers(
    'GET',
    '/animals/{id}',
    // The form has fields only if it was typed before a sign-in.
    withAnimal((visit, pet) => animalPage(visit, pet, mergeForm(visit, pet))),
  ),
  forMembers('POST', '/animals/{id}', withAnimal(change), { keepsTyped: true }),
  forMembers('POST', '/animals/{id}/status', withAnimal(takeStep)),
]

async function animalPage(visit: MemberVisit, pet: Pet, merge: Merge, invalid: Problems = []): Promise<HtmlPage> {
  const { categories } = visit
  const { changes, added } = await readHistory(visit, pet.id)
  const words = (name: FieldName) => inWords(pet, name, categories)
  const problems = [...unansweredProblems(merge), ...invalid]
  const isEditing =
    problems.length > 0 || merge.asked.length > 0 || merge.changedMeanwhile.length > 0 || visit.isRestored
  const back = keepingPosition('/animals', visit.query)
  const page = keepingPosition(`/animals/${pet.id}`, visit.query)
  return {
    title: withVisibleControls(pet.name),
    section: 'animals',
    ...(problems.length > 0 && { status: 400 }),
    ...(merge.asked.length > 0 && { status: 409 }),
    body: html`<p class="back"><a href="${back}">← Animals</a></p>
      <h1>${isolated(pet.name)}</h1>
      ${savedNotice(visit.query, words, back)}${await stepNotice(visit, 'animal')}${overtakenNotice(visit, changes[0])}
      ${meanwhileNotice(merge, words, changes[0], page)}${problemSummary(problems)}
      <div class="animal">
        <section class="panel" aria-label="Facts">
          ${facts(pet, words, added)}
          ${stepForm(visit, pet, 'animal')}
          <details class="edit" ${isEditing && html`open`}><summary class="button quiet">Edit</summary>${form(visit, {
            action: page,
            submit: 'Save',
            cancel: back,
            fields: html`${carriedFields(merge, pet)}
              ${mergedFields(merge, pet, changes[0], { value: (name) => merge.values[name], problems, categories })}`,
          })}</details>
          ${isManager(visit) && html`<a class="button quiet danger-outline" href="${keepingPosition(`/animals/${pet.id}/remove`, visit.query)}">Remove…</a>`}
        </section>
        ${timeline(changes, added)}
      </div>`,
  }
}

/** All but the name, which is the heading. */
function facts(pet: Pet, words: (name: FieldName) => string, added: Html): Html {
  const values: [label: string, value: Html | string][] = SHOWN_FIELDS.slice(1).map((name) => {
    const value = isolated(words(name))
    if (name === 'status') return [labelOf(name), html`<span class="mark ${pet.status}">${value}</span>`]
    return [
      labelOf(name),
      name === 'categoryId' ? html`<a href="${listAddress({ categoryId: pet.categoryId })}">${value}</a>` : value,
    ]
  })
  values.push(['Id', String(pet.id)], ['Added', added])
  return html`<dl class="fact-list">${values.map(([label, value]) => html`<div><dt>${label}</dt><dd>${value}</dd></div>`)}</dl>`
}

/** The query that makes `savedNotice` say so. */
const SAVED = { changed: 'yes' }

/** Saves what was changed in the form. What others changed meanwhile stays, and the page that follows names it. */
async function change(visit: MemberVisit, pet: Pet): Promise<Outcome> {
  const merge = mergeForm(visit, pet)
  const wanted = readAnimal((name) => merge.values[name], visit.categories, pet)
  if (wanted instanceof InvalidFields) return animalPage(visit, pet, merge, wanted.problems)
  if (merge.asked.length > 0) return animalPage(visit, pet, merge)
  const next = (more: Record<string, string>) => ({
    redirect: keepingPosition(`/animals/${pet.id}`, visit.query, { ...more, ...meanwhileQuery(merge) }),
  })
  if (isSamePet(pet, wanted)) return next(merge.isStoredAlready ? SAVED : {})
  const updated = await saveChange(visit, pet, wanted)
  if (updated.outcome === 'missing') return notFoundPage(visit)
  // Changed since it was read: merges again, with what is stored now.
  return updated.outcome === 'conflict' ? change(visit, updated.pet) : next(SAVED)
}

/** Looks up the animal that the address names, for a page about it. */
export function withAnimal(handle: (visit: MemberVisit, pet: Pet) => Outcome | Promise<Outcome>) {
  return async (visit: MemberVisit): Promise<Outcome> => {
    const id = int64FromText(visit.call.parameters['id']!)
    const pet = id === undefined ? undefined : await visit.store.pets.get(id)
    return pet === undefined ? notFoundPage(visit) : handle(visit, pet)
  }
}

function addPage(visit: MemberVisit, problems: Problems = []): HtmlPage {
  const value = (name: string) => visit.form.get(name) ?? ''
  const parts = { value, problems, categories: visit.categories }
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
        fields: html`${hidden('formId', value('formId') || newToken())}${FIELD_NAMES.map((name, nth) => animalField(name, { ...parts, focus: nth === 0 }))}`,
      })}
    </div>`,
  }
}

async function add(visit: MemberVisit): Promise<Outcome> {
  const { form: typed, store, who, now } = visit
  const parsed = readAnimal((name) => typed.get(name) ?? '', visit.categories)
  if (parsed instanceof InvalidFields) return addPage(visit, parsed.problems)
  const key = idempotencyKey(typed.get('formId') ?? '', parsed)
  const by = who.account.id
  const created = await store.pets.create(parsed, idempotencyFor(by, key, parsed, now), { at: now, by })
  if ('pet' in created) return { redirect: `/animals?added=${created.pet.id}` }
  return addPage(visit, [new FieldProblem('', 'This form is already being processed; send it again in a few seconds.')])
}

/** A form that is sent twice adds one animal. If the visitor goes back and edits the form, it adds another animal. */
function idempotencyKey(formId: string, newPet: NewPet): string {
  return `console:${hash('sha256', `${formId} ${fingerprintOf(newPet).toString('hex')}`)}`
}

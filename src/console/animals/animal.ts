// The page of one animal: shows its facts and its timeline, and changes its fields. If the animal was changed after the form was opened,
// both changes are kept, and a field that both changed is asked about (animal-merge.ts).
import { int64FromText } from '../../contract/int64.ts'
import { type FieldName, isSamePet, type Pet } from '../../contract/pets.ts'
import { InvalidFields } from '../../contract/errors.ts'
import { keepingPosition, listAddress } from './animal-addresses.ts'
import { inWords, labelOf, SHOWN_FIELDS } from '../../contract/pet-words.ts'
import { readAnimal, settleCategory, suggestedCategories } from './animal-form.ts'
import {
  authorOf,
  CHANGES_SHOWN,
  lastChangeOf,
  readHistory,
  readReservations,
  removedPage,
  timeline,
} from './animal-history.ts'
import {
  carriedFields,
  meanwhileNotice,
  type Merge,
  mergedFields,
  mergeForm,
  savedNotice,
  unansweredProblems,
} from './animal-merge.ts'
import { askForStep, overtakenNotice, stepForm, stepTaken, takeStep } from './animal-steps.ts'
import { form, type Problems, problemSummary } from '../every-page/forms.ts'
import { html, type Html, isolated, withVisibleControls } from '../../http/html/html.ts'
import { notFoundPage } from '../every-page/problem-pages.ts'
import {
  type ConsoleRoute,
  forMembers,
  type HtmlPage,
  isManager,
  type MemberVisit,
  type Outcome,
} from '../every-page/visit.ts'

export const animalRoutes: readonly ConsoleRoute[] = [
  forMembers(
    'GET',
    '/animals/{id}',
    // The form has fields only if it was typed before a sign-in.
    withAnimal((visit, pet) => animalPage(visit, pet, mergeForm(visit, pet))),
  ),
  forMembers('POST', '/animals/{id}', withAnimal(change), { keepsTyped: true }),
  forMembers('GET', '/animals/{id}/status', withAnimal(askForStep)),
  forMembers('POST', '/animals/{id}/status', withAnimal(takeStep), { keepsTyped: true }),
]

async function animalPage(visit: MemberVisit, pet: Pet, merge: Merge, invalid: Problems = []): Promise<HtmlPage> {
  const { categories } = visit
  const [{ changes, added }, suggested] = await Promise.all([readHistory(visit, pet.id), suggestedCategories(visit)])
  const [taken, reserved] = await Promise.all([stepTaken(visit), readReservations(visit, [pet])])
  const words = (name: FieldName) => inWords(pet, name, categories)
  const problems = [...unansweredProblems(merge), ...invalid]
  const isEditing =
    problems.length > 0 ||
    merge.asked.length > 0 ||
    merge.changedMeanwhile.length > 0 ||
    visit.isRestored ||
    visit.query.has('edit')
  const back = keepingPosition('/animals', visit.query)
  const page = keepingPosition(`/animals/${pet.id}`, visit.query)
  return {
    title: withVisibleControls(pet.name),
    section: 'animals',
    ...(problems.length > 0 && { status: 400 }),
    ...(merge.asked.length > 0 && { status: 409 }),
    body: html`<p class="back"><a href="${back}">← Animals</a></p>
      <h1>${isolated(pet.name)}</h1>
      ${savedNotice(visit.query, words, back)}${taken && html`<div class="notice good" role="status"><span>${taken.said}</span>${taken.undo && stepForm(visit, pet, taken.undo)}</div>`}${overtakenNotice(visit, changes)}
      ${meanwhileNotice(merge, words, changes[0], page)}${problemSummary(problems)}
      <div class="animal">
        <section class="panel" aria-label="Facts">
          ${facts(pet, words, added, reserved.get(pet.id))}
          <div class="next">${stepForm(visit, pet)}
          <details class="edit" ${isEditing && html`open`}><summary class="button">Edit</summary>${form(visit, {
            action: page,
            submit: 'Save',
            cancel: page,
            fields: html`${carriedFields(merge, pet)}
              ${mergedFields(merge, pet, changes[0], { value: (name) => merge.values[name], problems, categories, suggested, focus: visit.query.has('edit') })}`,
          })}</details></div>
          ${isManager(visit) && html`<a class="button quiet danger-outline" href="${keepingPosition(`/animals/${pet.id}/remove`, visit.query)}">Remove…</a>`}
        </section>
        ${timeline(changes, added)}
      </div>`,
  }
}

/** All but the name, which is the heading. */
function facts(pet: Pet, words: (name: FieldName) => string, added: Html, reserved = html``): Html {
  const values: [label: string, value: Html | string][] = SHOWN_FIELDS.slice(1).map((name) => {
    const value = isolated(words(name))
    if (name === 'status') return [labelOf(name), html`<span class="mark ${pet.status}">${value}</span> ${reserved}`]
    return [
      labelOf(name),
      name === 'categoryId'
        ? html`<a href="${listAddress({ categoryId: pet.categoryId, inShop: true })}">${value}</a>`
        : value,
    ]
  })
  values.push(['Id', String(pet.id)], ['Added', added])
  return html`<dl class="fact-list">${values.map(([label, value]) => html`<div><dt>${label}</dt><dd>${value}</dd></div>`)}</dl>`
}

/** The query that makes `savedNotice` say so. */
const SAVED = { changed: 'yes' }

/** Saves what was changed in the form. What others changed meanwhile stays, and the page that follows names it. */
async function change(visit: MemberVisit, pet: Pet): Promise<Outcome> {
  const unsettled = await settleCategory(visit)
  const merge = mergeForm(visit, pet)
  const wanted = unsettled ?? readAnimal((name) => merge.values[name], visit.categories, pet)
  if (wanted instanceof InvalidFields) return animalPage(visit, pet, merge, wanted.problems)
  if (merge.asked.length > 0) return animalPage(visit, pet, merge)
  const { storedAlready } = merge
  /** `saved` makes `savedNotice` say so, and name the fields that others changed, also to the same values. */
  const next = (saved: object, others: readonly FieldName[]) => {
    const meanwhile = [...merge.changedMeanwhile, ...others].join()
    return { redirect: keepingPosition(`/animals/${pet.id}`, visit.query, { ...saved, meanwhile }) }
  }
  if (isSamePet(pet, wanted)) {
    const changes = await visit.store.accounts.changesOf(pet.id, CHANGES_SHOWN)
    const isOwn = (name: FieldName) => lastChangeOf(name, changes)?.accountId === visit.who.account.id
    const others = storedAlready.filter((name) => !isOwn(name))
    // Sent twice, or left alone.
    if (others.length < storedAlready.length) return next(SAVED, others)
    if (others.length === 0) return next({}, [])
    return next({ overtaken: String(lastChangeOf(others[0]!, changes)?.at) }, [])
  }
  const updated = await visit.store.pets.update(pet.id, pet, wanted, authorOf(visit))
  if (updated.outcome === 'missing') return removedPage(visit, pet.id)
  // Changed since it was read: merges again, with what is stored now.
  return updated.outcome === 'conflict' ? change(visit, updated.pet) : next(SAVED, storedAlready)
}

export function withAnimal(handle: (visit: MemberVisit, pet: Pet) => Outcome | Promise<Outcome>) {
  return async (visit: MemberVisit): Promise<Outcome> => {
    const id = int64FromText(visit.call.parameters['id']!)
    if (id === undefined) return notFoundPage(visit)
    const pet = await visit.store.pets.get(id)
    return pet === undefined ? removedPage(visit, id) : handle(visit, pet)
  }
}

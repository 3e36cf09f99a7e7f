// The next step of an animal, from the list or its page: reserve it, sell it, release it, or take it back into the shop. A step is taken only from
// the status that the page showed, and undone only while it is the animal's newest change. From the list it leads back to the row.
import { isDeepStrictEqual } from 'node:util'
import { entryOf } from '../../contract/text/entry-of.ts'
import { int64FromText } from '../../contract/int64.ts'
import { difference, inWords, SHOWN_FIELDS, STATUS_WORDS } from '../../contract/pet-words.ts'
import { isSamePet, type Pet, type PetStatus } from '../../contract/pets.ts'
import { html, type Html, isolated, isolatedNames, withVisibleControls } from '../../http/html/html.ts'
import { keepingPosition } from './animal-addresses.ts'
import { authorOf, type Change, CHANGES_SHOWN, lastChangeOf, removedPage } from './animal-history.ts'
import { askAgain } from '../every-page/form-page.ts'
import { buttonForm, csrfField, hidden } from '../every-page/forms.ts'
import { minute } from '../every-page/times.ts'
import type { MemberVisit, Outcome } from '../every-page/visit.ts'

/** The words on a button, and the status that it leads to. */
type Step = readonly [words: string, to: string, since?: string]

/** The likeliest step is the first. */
const STEPS: Record<PetStatus, readonly Step[]> = {
  available: [
    ['Reserve', 'pending'],
    ['Sell', 'sold'],
  ],
  pending: [
    ['Sell', 'sold'],
    ['Release', 'available'],
  ],
  sold: [['Back in the shop', 'available']],
}

/** Renders the form of all steps of a list, whose buttons are in the rows. */
export function listSteps(visit: MemberVisit): Html {
  return html`<form id="step" method="post" hidden>${csrfField(visit)}${hidden('on', 'list')}</form>`
}

/** Renders the buttons of a row, the first of which the answer to a step leads to; `position` is the query of the page. */
export function rowSteps(pet: Pet, position: string, undo?: Undo): Html[] {
  const steps = undo === undefined ? stepsOf(pet) : [['Undo', undo.to, undo.since] as const, ...stepsOf(pet)]
  return steps.map((step, nth) => {
    const anchor = nth === 0 && html`id="animal-${pet.id}" aria-describedby="said"`
    const where = html`form="step" formaction="/animals/${pet.id}/status${position}"`
    return stepButton(pet, step, html`class="button quiet" ${where} ${anchor}`)
  })
}

/** Renders a form with the steps of an animal's page, or with the Undo of the one that was just taken. */
export function stepForm(visit: MemberVisit, pet: Pet, undo?: Undo): Html | false {
  const steps = undo === undefined ? stepsOf(pet) : [['Undo', undo.to, undo.since] as const]
  const buttons = steps.map((step, nth) =>
    stepButton(pet, step, html`class="button ${undo || pet.status === 'sold' ? 'quiet' : nth === 0 && 'primary'}"`),
  )
  return (
    steps.length > 0 && buttonForm(visit, keepingPosition(`/animals/${pet.id}/status`, visit.query), html`${buttons}`)
  )
}

/** An animal with a status of a newer program has no step. */
function stepsOf({ status }: Pet): readonly Step[] {
  return entryOf(STEPS, status) ?? []
}

/** The button sends from which status to which one, and for an Undo when the step was taken. */
function stepButton({ name, status }: Pet, [words, ...to]: Step, attributes: Html): Html {
  return html`<button ${attributes} name="step" value="${[status, ...to].join('.')}">${words}<span class="visually-hidden"> ${name}</span></button>`
}

/** Takes the step from one status to another; with the time of the visitor's own step, undoes that one. If it was overtaken, the animal's page says by what. */
export async function takeStep(visit: MemberVisit, pet: Pet): Promise<Outcome> {
  const { form, query, store, who, now } = visit
  const [from = '', to = '', since] = (form.get('step') ?? '').split('.')
  const page = `/animals/${pet.id}`
  const status = to as PetStatus
  const isTaken = pet.status === status
  const changes = await store.accounts.changesOf(pet.id, CHANGES_SHOWN)
  const [newest] = changes
  const own = newest?.accountId === who.account.id ? newest.at : undefined
  const first = pet.status === from ? newest : lastChangeOf('status', changes)
  const done = (at: number | undefined) => {
    const undo = at === undefined || since !== undefined ? {} : { was: from, since: String(at) }
    const step = { step: String(pet.id), ...undo }
    if (form.get('on') !== 'list') return { redirect: keepingPosition(page, query, step) }
    return { redirect: `${keepingPosition('/animals', query, step)}#animal-${pet.id}` }
  }
  // The form was sent twice.
  if (isTaken && first?.accountId === who.account.id) {
    const step = difference({ ...pet, status: from as PetStatus }, pet, visit.categories)
    return done(isDeepStrictEqual(newest?.data, step) ? own : undefined)
  }
  const isUndoable = since === undefined || String(own) === since
  if (isTaken || pet.status !== from || !isUndoable || !Object.hasOwn(STATUS_WORDS, status)) {
    // The changes were read after the animal, and may be newer.
    const stored = await store.pets.get(pet.id)
    if (stored !== undefined && !isSamePet(stored, pet)) return takeStep(visit, stored)
    return { redirect: keepingPosition(page, query, { overtaken: String(first?.at) }) }
  }
  const updated = await visit.store.pets.update(pet.id, pet, { ...pet, status }, authorOf(visit))
  if (updated.outcome === 'missing') return removedPage(visit, pet.id)
  return updated.outcome === 'conflict' ? takeStep(visit, updated.pet) : done(now)
}

/** Asks, after a sign-in, whether to take the step whose session had ended, if the animal still has the status that was shown. */
export async function askForStep(visit: MemberVisit, pet: Pet): Promise<Outcome> {
  const { form, query, store, categories } = visit
  const page = `/animals/${pet.id}`
  const [from, to, since] = (form.get('step') ?? '').split('.')
  const status = (to ?? '') as PetStatus
  if (!visit.isRestored) return { redirect: page }
  if (pet.status !== from) {
    const first = lastChangeOf('status', await store.accounts.changesOf(pet.id, CHANGES_SHOWN))
    return { redirect: keepingPosition(page, query, { overtaken: String(first?.at) }) }
  }
  const step = stepsOf(pet).find((each) => each[1] === to && since === undefined)
  const words = step?.[0] ?? `Set back to ${inWords({ ...pet, status }, 'status', categories)}`
  const what = words.includes(' ') ? `${words}:` : words
  const now = SHOWN_FIELDS.slice(1).map((name) => inWords(pet, name, categories))
  return askAgain(visit, {
    title: `${what} ${withVisibleControls(pet.name)}`,
    heading: html`${what} ${isolated(pet.name)}`,
    section: 'animals',
    above: html`<p>${isolated(pet.name)} (${pet.id}) is still as it was: ${isolated(now.join(', '))}.</p>`,
    action: keepingPosition(`${page}/status`, query),
    submit: words,
    cancel: keepingPosition(form.get('on') === 'list' ? '/animals' : page, query),
  })
}

/** A step that was just taken: the animal as it is stored now, the words for that, and how it can be undone. */
export interface Taken {
  pet: Pet
  said: Html
  undo: Undo | undefined
}

/** The status before a step, and the time of the step. */
interface Undo {
  to: string
  since: string
}

/** Resolves with the step that the address names. */
export async function stepTaken(visit: MemberVisit): Promise<Taken | undefined> {
  const { query, store, who } = visit
  const id = int64FromText(query.get('step') ?? '')
  const pet = id === undefined ? undefined : await store.pets.get(id)
  if (pet === undefined) return undefined
  const [to, since] = [query.get('was') ?? '', query.get('since')]
  const [newest] = since === null ? [] : await store.accounts.changesOf(pet.id, 1)
  const isNewest = newest?.accountId === who.account.id && String(newest.at) === since
  // The address names the former status: the history must have it too.
  const step = difference({ ...pet, status: to as PetStatus }, pet, visit.categories)
  const isUndoable = isNewest && isDeepStrictEqual(newest.data, step) && Object.hasOwn(STATUS_WORDS, to)
  return {
    pet,
    said: html`${isolated(pet.name)} (${pet.id}) is now <strong>${inWords(pet, 'status', visit.categories)}</strong>.`,
    undo: isUndoable && since !== null ? { to, since } : undefined,
  }
}

/** Says what happened to an animal before a step or an Undo that was not taken. */
export function overtakenNotice({ query }: MemberVisit, changes: readonly Change[]): Html | false {
  const first = changes.find(({ at }) => String(at) === query.get('overtaken'))
  const what = first
    ? html`${first.by} changed it first, ${minute(first.at)}: ${isolatedNames(first.detail ?? '')}.`
    : 'It was changed first.'
  return (
    query.has('overtaken') &&
    html`<p class="notice warn" role="alert"><strong>Nothing was changed.</strong> ${what}</p>`
  )
}

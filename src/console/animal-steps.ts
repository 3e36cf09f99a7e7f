// The next step of an animal, from the list or its page: reserve it, sell it, or make it available again. A step is taken only from
// the status that the page showed, and undone only while it is the animal's newest change.
import { entryOf } from '../contract/entry-of.ts'
import { int64FromText } from '../contract/int64.ts'
import type { Pet, PetStatus } from '../contract/pets.ts'
import { html, type Html, isolated } from '../http/html.ts'
import { keepingPosition } from './animal-addresses.ts'
import { inWords, STATUS_WORDS } from './animal-form.ts'
import { type Change, difference, saveChange } from './animal-history.ts'
import { hidden } from './forms.ts'
import { notFoundPage } from './problem-pages.ts'
import { minute } from './times.ts'
import { csrfTokenFor, type MemberVisit, type Outcome } from './visit.ts'

const STEPS: Record<PetStatus, { words: string; to: PetStatus }> = {
  available: { words: 'Reserve', to: 'pending' },
  pending: { words: 'Sell', to: 'sold' },
  sold: { words: 'Make available', to: 'available' },
}

/** `on` is the page that follows: the list, or that of the animal. An animal with a status of a newer program has no step. */
export function stepForm(visit: MemberVisit, pet: Pet, on: 'list' | 'animal'): Html | undefined {
  const step = entryOf(STEPS, pet.status ?? '')
  return step && statusForm(visit, pet, step.words, { to: step.to, on })
}

function statusForm(visit: MemberVisit, pet: Pet, words: string, fields: Record<string, string>): Html {
  return html`<form class="step" method="post" action="${keepingPosition(`/animals/${pet.id}/status`, visit.query)}">
    ${hidden('csrf', csrfTokenFor(visit))}${hidden('from', pet.status ?? '')}
    ${Object.entries(fields).map(([name, value]) => hidden(name, value))}
    <button class="button quiet">${words}<span class="visually-hidden"> ${pet.name}</span></button>
  </form>`
}

/** Takes a step; with `since`, the time of the visitor's own step, undoes that one. If it was overtaken, the animal's page says by what. */
export async function takeStep(visit: MemberVisit, pet: Pet): Promise<Outcome> {
  const { form, query, store, who, now } = visit
  const [from, since, on] = [form.get('from'), form.get('since'), form.get('on')]
  const page = `/animals/${pet.id}`
  const status = (form.get('to') ?? '') as PetStatus
  const [newest] = await store.accounts.changesOf(pet.id, 1)
  const own = newest?.accountId === who.account.id ? newest.at : undefined
  const done = (at: number | undefined) => {
    const undo = at === undefined || since !== null ? {} : { was: from ?? '', since: String(at) }
    const path = on === 'animal' ? page : '/animals'
    return { redirect: keepingPosition(path, query, { step: String(pet.id), ...undo }) }
  }
  // The form was sent twice, or a colleague has taken the same step, which can't be undone here.
  if (pet.status === status) {
    const step = difference({ ...pet, status: from as PetStatus }, pet, visit.categories)
    return done(newest?.detail === step ? own : undefined)
  }
  const isUndoable = since === null || String(own) === since
  if (pet.status !== from || !isUndoable || !Object.hasOwn(STATUS_WORDS, status))
    return { redirect: keepingPosition(page, query, { overtaken: 'yes' }) }
  const updated = await saveChange(visit, pet, { ...pet, status })
  if (updated.outcome === 'missing') return notFoundPage(visit)
  return updated.outcome === 'conflict' ? takeStep(visit, updated.pet) : done(now)
}

/** Confirms the step that the address names, by what is stored now, and offers to undo it. */
export async function stepNotice(visit: MemberVisit, on: 'list' | 'animal'): Promise<Html | undefined> {
  const { query, store } = visit
  const id = int64FromText(query.get('step') ?? '')
  const pet = id === undefined ? undefined : await store.pets.get(id)
  if (pet === undefined) return undefined
  const [to, since] = [query.get('was') ?? '', query.get('since')]
  const isUndoable = since !== null && to !== pet.status && Object.hasOwn(STATUS_WORDS, to)
  return html`<div class="notice good" role="status"><span>${isolated(pet.name)} (${pet.id}) is now <strong>${inWords(pet, 'status', visit.categories)}</strong>.</span>
    ${isUndoable && statusForm(visit, pet, 'Undo', { to, since, on })}</div>`
}

/** Says what happened to an animal before a step or an Undo that was not taken. */
export function overtakenNotice({ query }: MemberVisit, last: Change | undefined): Html | false {
  const what = last
    ? html`${last.by} changed it first, ${minute(last.at)}: ${isolated(last.detail ?? '')}.`
    : 'It was changed first.'
  return (
    query.has('overtaken') &&
    html`<p class="notice warn" role="alert"><strong>Nothing was changed.</strong> ${what}</p>`
  )
}

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
import { buttonForm, hidden } from '../every-page/forms.ts'
import { minute } from '../every-page/times.ts'
import type { MemberVisit, Outcome } from '../every-page/visit.ts'

/** The words on the buttons, and the statuses that they lead to; the likeliest step is the first. */
const STEPS: Record<PetStatus, readonly (readonly [words: string, to: PetStatus])[]> = {
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

/** The page that a step was taken from, and that follows. */
type On = 'list' | 'animal'

/** Renders the steps, and the Undo of the one that was just taken. An animal with a status of a newer program has no step. */
export function stepForms(visit: MemberVisit, pet: Pet, on: On, undo?: Html | false): Html | false {
  const steps = entryOf(STEPS, pet.status) ?? []
  const look = (nth: number) => (on === 'list' || pet.status === 'sold' ? 'quiet' : nth === 0 && 'primary')
  const id = (nth: number) => on === 'list' && nth === 0 && !undo && rowAnchor(pet)
  const buttons = steps.map(([words, to], nth) =>
    button(pet, words, html`class="button ${look(nth)}" name="to" value="${to}" ${id(nth)}`),
  )
  return html`${undo}${steps.length > 0 && statusForm(visit, pet, buttons, { on })}`
}

/** The answer to a step leads to this button, so that the browser shows the row again and the keyboard goes on from there. */
function rowAnchor({ id }: Pet): Html {
  return html`id="animal-${id}" aria-describedby="said"`
}

function button({ name }: Pet, words: string, attributes: Html): Html {
  return html`<button ${attributes}>${words}<span class="visually-hidden"> ${name}</span></button>`
}

function statusForm(visit: MemberVisit, pet: Pet, buttons: Html | Html[], fields: Record<string, string>): Html {
  const carried = Object.entries({ from: pet.status, ...fields }).map(([name, value]) => hidden(name, value))
  return buttonForm(visit, keepingPosition(`/animals/${pet.id}/status`, visit.query), html`${carried}${buttons}`)
}

/** Takes a step; with `since`, the time of the visitor's own step, undoes that one. If it was overtaken, the animal's page says by what. */
export async function takeStep(visit: MemberVisit, pet: Pet): Promise<Outcome> {
  const { form, query, store, who, now } = visit
  const [from, since, on] = [form.get('from'), form.get('since'), form.get('on')]
  const page = `/animals/${pet.id}`
  const status = (form.get('to') ?? '') as PetStatus
  const isTaken = pet.status === status
  const changes = await store.accounts.changesOf(pet.id, CHANGES_SHOWN)
  const [newest] = changes
  const own = newest?.accountId === who.account.id ? newest.at : undefined
  const first = pet.status === from ? newest : lastChangeOf('status', changes)
  const done = (at: number | undefined) => {
    const undo = at === undefined || since !== null ? {} : { was: from ?? '', since: String(at) }
    const step = { step: String(pet.id), ...undo }
    if (on === 'animal') return { redirect: keepingPosition(page, query, step) }
    return { redirect: `${keepingPosition('/animals', query, step)}#animal-${pet.id}` }
  }
  // The form was sent twice.
  if (isTaken && first?.accountId === who.account.id) {
    const step = difference({ ...pet, status: from as PetStatus }, pet, visit.categories)
    return done(isDeepStrictEqual(newest?.data, step) ? own : undefined)
  }
  const isUndoable = since === null || String(own) === since
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
  const [page, status] = [`/animals/${pet.id}`, (form.get('to') ?? '') as PetStatus]
  if (!visit.isRestored) return { redirect: page }
  if (pet.status !== form.get('from')) {
    const first = lastChangeOf('status', await store.accounts.changesOf(pet.id, CHANGES_SHOWN))
    return { redirect: keepingPosition(page, query, { overtaken: String(first?.at) }) }
  }
  const step = (entryOf(STEPS, pet.status) ?? []).find(([, to]) => to === status && !form.has('since'))
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
    cancel: keepingPosition(form.get('on') === 'animal' ? page : '/animals', query),
  })
}

/** A step that was just taken: the animal as it is stored now, the words for that, and a form if it can be undone. */
export interface Taken {
  pet: Pet
  said: Html
  undo: Html | false
}

/** Resolves with the step that the address names. */
export async function stepTaken(visit: MemberVisit, on: On): Promise<Taken | undefined> {
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
  const attributes = html`class="button quiet" ${on === 'list' && rowAnchor(pet)}`
  return {
    pet,
    said: html`${isolated(pet.name)} (${pet.id}) is now <strong>${inWords(pet, 'status', visit.categories)}</strong>.`,
    undo: isUndoable && statusForm(visit, pet, button(pet, 'Undo', attributes), { to, since, on }),
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

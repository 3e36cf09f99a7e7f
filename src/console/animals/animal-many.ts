// Many animals of a list at once: those that are ticked, or all of the list, get another status or category, or are removed, as one batch.
// Only those that still are what was shown are changed. All of a list are selected by a digest of what they are.
import { hash } from 'node:crypto'
import { newToken } from '../../accounts/sessions.ts'
import { int64FromText } from '../../contract/int64.ts'
import { FieldProblem, Problem } from '../../contract/errors.ts'
import { entryOf } from '../../contract/text/entry-of.ts'
import { describePet } from '../../contract/pet-words.ts'
import { fieldFromText, FIELDS, type NewPet, type Pet } from '../../contract/pets.ts'
import { html, type Html, isolated, withVisibleControls } from '../../http/html/html.ts'
import type { Batch } from '../../store/batches/batch.ts'
import type { BatchPet, NewBatch } from '../../store/batches/batch-store.ts'
import { fingerprintOf } from '../../store/idempotency.ts'
import { IN_SHOP, keepingPosition, ROWS } from './animal-addresses.ts'
import { NONE, OTHERS, work } from './animal-batches.ts'
import { authorOf, removedPage } from './animal-history.ts'
import { ALL_MOST, readAll, readAsked } from './animal-list.ts'
import { askAgain, formPage } from '../every-page/form-page.ts'
import { choice, csrfField, hidden, type Problems } from '../every-page/forms.ts'
import { forManagers, MANAGERS_ONLY_PAGE } from '../every-page/managers.ts'
import { badRequestPage, notFoundPage } from '../every-page/problem-pages.ts'
import { count, counted } from '../every-page/times.ts'
import { type ConsoleRoute, forMembers, isManager } from '../every-page/visit.ts'
import type { HtmlPage, MemberVisit, Outcome } from '../every-page/visit.ts'

const PATH = '/animals/many'

export const animalManyRoutes: readonly ConsoleRoute[] = [
  forMembers('GET', PATH, askForMany),
  forMembers('POST', PATH, handle, { keepsTyped: true }),
  forManagers('GET', '/animals/{id}/remove', askToRemove),
]

/** A page of the list, and the animal of a step that keeps its place. */
const MOST = ROWS + 1

/** Renders the tick of a row, with what the row shows in a short form: the id and a hash. */
export function pick(pet: Pet, isTicked: boolean): Html {
  return html`<label class="pick"><input type="checkbox" name="pick" value="${pet.id}" form="many" ${isTicked && html`checked`}><span class="visually-hidden">Tick ${pet.name}</span></label>
    <input type="hidden" name="shown" value="${pet.id}.${hashOf(pet)}" form="many">`
}

function hashOf(pet: NewPet): string {
  return fingerprintOf(pet).toString('base64url', 0, 9)
}

/** Renders the box that ticks all rows of the page; without a script, all of them count as ticked while it is. */
export const PICK_ALL = html`<label class="pick"><input type="checkbox" name="all" value="yes" form="many"><span class="visually-hidden">Tick all on this page</span></label>`

/** Tells whether all of a list are those that were selected, as they were then. */
function digestOf(pets: readonly Pet[]): string {
  return hash('sha256', pets.map((pet) => `${pet.id}.${hashOf(pet)}`).join(), 'base64url')
}

/**
 * Renders the bar that is shown while a row is ticked (console.css counts them). The Enter key presses its first button, which sends nothing.
 * It offers to select all of `total`, if they are more than the page shows. `all` are selected already.
 */
export function manyBar(visit: MemberVisit, shown: number, total = 0, all?: readonly Pet[]): Html {
  const list = (select: string) => keepingPosition('/animals', visit.query, { select })
  const more =
    total > shown &&
    total <= ALL_MOST &&
    html`<a class="button ghost all" data-select href="${list('all')}">Select all ${count(total)}</a>`
  const ticked = html`${PICK_ALL}<span class="ticked">selected</span> ${more} <button class="button ghost" type="reset">Clear</button>`
  const selected =
    all &&
    html`${hidden('set', digestOf(all))}<strong role="status" data-selected="${all.length}">${count(all.length)} selected</strong> <a class="button ghost" href="${list('')}">Clear</a>`
  const button = ([status, words]: [string, string]) =>
    html`<button class="button" name="status" value="${status}">${words}</button> `
  return html`<form class="many" id="many" method="post" action="${keepingPosition(PATH, visit.query)}" autocomplete="off" aria-label="Ticked animals">
    ${csrfField(visit)}${hidden('formId', newToken())}<button hidden formmethod="dialog"></button>
    ${selected ?? ticked}
    ${Object.entries(WORDS).map(button)}
    ${visit.categories.names.size > 0 && html`<button class="button" name="move" value="ask" data-choose>Move to…</button>`}
    ${isManager(visit) && html`<details class="menu"><summary class="button ghost">…<span class="visually-hidden"> More</span></summary><div class="menu-box"><button class="button danger-outline" name="remove" value="ask">Remove…</button></div></details>`}</form>`
}

/** Asks for the category that the ticked animals get: where no script shows the menu of categories, or if the one that was chosen has gone. */
function askForCategory(visit: MemberVisit, problems: Problems = []): HtmlPage {
  const { categories, form: sent, query } = visit
  const words = (number: bigint) => withVisibleControls(categories.words(number))
  const options = Array.from(categories.names.keys(), (number) => [String(number), words(number)] as const)
  const carried = [...sent].filter(([name]) => !['csrf', 'move', 'categoryId'].includes(name))
  return formPage(visit, {
    title: 'Move to another category',
    section: 'animals',
    problems,
    action: keepingPosition(PATH, query),
    submit: 'Move',
    cancel: keepingPosition('/animals', query),
    fields: html`${carried.map(([name, value]) => hidden(name, value))}${choice({ name: 'categoryId', label: 'Category', options, problems })}`,
  })
}

const NO_CATEGORY = 'This category is no longer there. Nothing was moved: choose another one'

async function handle(visit: MemberVisit): Promise<Outcome> {
  const { form: sent, query, store, who } = visit
  if (sent.has('move')) return askForCategory(visit)
  const isRemoval = sent.has('remove')
  const field = sent.has('status') ? 'status' : 'categoryId'
  const to = sent.get(field) ?? ''
  const value = fieldFromText(field, to)
  // Somebody has removed it since the menu was opened.
  if (field === 'categoryId' && typeof value === 'bigint' && !visit.categories.names.has(value))
    return askForCategory(visit, [new FieldProblem(field, NO_CATEGORY)])
  const next = (batch: string) => ({ redirect: `${keepingPosition('/animals', query, { batch })}#told` })
  const form = hash('sha256', JSON.stringify([who.account.id, ...[...sent].filter(([name]) => name !== 'csrf')]))
  const goOnWith = async (batch: Batch | undefined) => {
    await work(visit, batch)
    return next(String(batch?.id ?? NONE))
  }
  const found = await chosenIn(visit)
  if (found === undefined) {
    // The same form may have changed them: it was sent twice, or once more after an interruption.
    const begun = await store.batches.begunBy(form)
    if (begun !== undefined) return goOnWith(begun)
    return { redirect: keepingPosition('/animals', query, { select: 'all', batch: OTHERS }) }
  }
  const most = isRemoval || !sent.has('set') ? MOST : ALL_MOST
  if (found.length > most || !(isRemoval || FIELDS[field].check(value)))
    return badRequestPage(400, `Tick at most ${ROWS} animals, and choose what to do with them.`)
  if (isRemoval && !isManager(visit)) return MANAGERS_ONLY_PAGE
  if (sent.get('remove') === 'ask' && found.length > 0) {
    const ids = encodeURIComponent(found.map(({ id }) => id).join('.'))
    return { redirect: keepingPosition(`/animals/${ids}/remove`, query) }
  }
  const pets = found.filter(({ former }) => isRemoval || former?.[field] !== value)
  if (pets.length === 0) return next(NONE)
  const did: NewBatch = isRemoval
    ? { form, action: 'removed', data: {} }
    : { form, action: 'changed', data: { field, to } }
  return goOnWith(await store.batches.begin(did, pets, authorOf(visit)))
}

const WORDS: Record<string, string> = { sold: 'Sell', pending: 'Reserve', available: 'Release' }

/** Asks, after a sign-in, whether to do what was pressed when the session had ended, to those that still are as they were shown. */
async function askForMany(visit: MemberVisit): Promise<Outcome> {
  const { form: sent, query } = visit
  if (!visit.isRestored) return { redirect: '/animals' }
  const found = (await chosenIn(visit)) ?? []
  const same = found.filter(({ former }) => former !== undefined)
  const selected = sent.has('set') ? { select: 'all' } : {}
  if (same.length === 0) return { redirect: keepingPosition('/animals', query, { ...selected, batch: OTHERS }) }
  const does = sent.has('remove') ? 'Remove' : (entryOf(WORDS, sent.get('status') ?? '') ?? 'Move')
  const words = `${does} ${counted(same.length, 'animal')}`
  const left = found.length - same.length
  const number = int64FromText(sent.get('categoryId') ?? '')
  const to = number === undefined ? '' : ` to ${withVisibleControls(visit.categories.words(number))}`
  return askAgain(visit, {
    title: `${words}${to}`,
    section: 'animals',
    above: left > 0 ? html`<p>${counted(left, 'animal')} changed since, and will be left alone.</p>` : undefined,
    action: keepingPosition(PATH, query),
    submit: words,
    cancel: keepingPosition('/animals', query),
  })
}

/**
 * Resolves with the animals that were ticked, or with all of the list but those that are not, without a former state if they are no longer
 * as they were shown. Resolves with undefined if all were selected, and others are listed now.
 */
async function chosenIn(visit: MemberVisit): Promise<BatchPet[] | undefined> {
  const { form: sent, store } = visit
  const [ticked, digest] = [new Set(sent.getAll('pick')), sent.get('set')]
  const rows = new Map<bigint, { shown: string; isTicked: boolean }>()
  for (const token of sent.getAll('shown')) {
    const [digits = '', shown = ''] = token.split('.', 2)
    const id = int64FromText(digits)
    if (id !== undefined) rows.set(id, { shown, isTicked: ticked.has(digits) || sent.has('all') })
  }
  const asShown = (id: bigint, pet: Pet | undefined) => {
    const isAsShown = pet !== undefined && hashOf(pet) === (rows.get(id)?.shown ?? hashOf(pet))
    return { id, former: isAsShown ? pet : undefined }
  }
  if (digest === null) {
    const ids = [...rows].flatMap(([id, { isTicked }]) => (isTicked ? [id] : []))
    return Promise.all(ids.map(async (id) => asShown(id, await store.pets.get(id))))
  }
  const asked = readAsked(visit.query, IN_SHOP)
  const all = asked instanceof Problem ? undefined : await readAll(visit, asked)
  if (all === undefined || digestOf(all.pets) !== digest) return undefined
  return all.pets.flatMap((pet) => (rows.get(pet.id)?.isTicked === false ? [] : [asShown(pet.id, pet)]))
}

/** The address names one animal, or several with dots between their ids: a browser goes back to it, unlike to the answer to a form. */
async function askToRemove(visit: MemberVisit): Promise<Outcome> {
  const ids = visit.call.parameters['id']!.split('.', MOST)
  const numbers = ids.flatMap((digits) => int64FromText(digits) ?? [])
  const pets = (await Promise.all(numbers.map((id) => visit.store.pets.get(id)))).filter((pet) => pet !== undefined)
  if (pets.length > 0) return confirmPage(visit, pets, ids.length > 1 ? '/animals' : `/animals/${ids[0]}`)
  return numbers[0] === undefined ? notFoundPage(visit) : removedPage(visit, numbers[0])
}

/** Shows the animals as they are stored now, and removes them only if they still are. */
function confirmPage(visit: MemberVisit, pets: readonly Pet[], cancel: string): HtmlPage {
  const words = counted(pets.length, 'animal')
  return formPage(visit, {
    title: `Remove ${words}?`,
    section: 'animals',
    above: html`<ul class="plain-list">${pets.map((pet) => html`<li>${isolated(describePet(pet, visit.categories))}; Id: ${pet.id}</li>`)}</ul>
      <p>Only for animals that were entered by mistake: they can’t be brought back, and their ids are never used again. Their history stays.</p>`,
    action: keepingPosition(PATH, visit.query),
    submit: `Remove ${words}`,
    danger: true,
    cancel: keepingPosition(cancel, visit.query),
    fields: html`${hidden('formId', newToken())}${hidden('remove', 'yes')}${hidden('all', 'yes')}${pets.map((pet) => hidden('shown', `${pet.id}.${hashOf(pet)}`))}`,
  })
}

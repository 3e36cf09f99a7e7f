// Many animals of a list at once: those that are ticked get another status or category, or are removed, as one batch. Only those that still
// are what their rows showed are changed.
import { hash } from 'node:crypto'
import { newToken } from '../../accounts/sessions.ts'
import { int64FromText } from '../../contract/int64.ts'
import { describePet } from '../../contract/pet-words.ts'
import { fieldFromText, FIELDS, type NewPet, type Pet } from '../../contract/pets.ts'
import { html, type Html, isolated, withVisibleControls } from '../../http/html/html.ts'
import type { BatchPet, NewBatch } from '../../store/batches/batch-store.ts'
import { fingerprintOf } from '../../store/idempotency.ts'
import { keepingPosition, ROWS } from './animal-addresses.ts'
import { NONE, work } from './animal-batches.ts'
import { authorOf, removedPage } from './animal-history.ts'
import { formPage } from '../every-page/form-page.ts'
import { choice, csrfField, hidden } from '../every-page/forms.ts'
import { forManagers, MANAGERS_ONLY_PAGE } from '../every-page/managers.ts'
import { badRequestPage, notFoundPage } from '../every-page/problem-pages.ts'
import { counted } from '../every-page/times.ts'
import { type ConsoleRoute, forMembers, isManager } from '../every-page/visit.ts'
import type { HtmlPage, MemberVisit, Outcome } from '../every-page/visit.ts'

const PATH = '/animals/many'

export const animalManyRoutes: readonly ConsoleRoute[] = [
  forMembers('POST', PATH, handle),
  forManagers('GET', '/animals/{id}/remove', askToRemove),
]

/** A page of the list, and the animal of a step that keeps its place. */
const MOST = ROWS + 1

/** Renders the tick of a row, with what the row shows in a short form: the id and a hash. */
export function pick(pet: Pet): Html {
  return html`<label class="pick"><input type="checkbox" name="pick" value="${pet.id}" form="many"><span class="visually-hidden">Tick ${pet.name}</span></label>
    <input type="hidden" name="shown" value="${pet.id}.${hashOf(pet)}" form="many">`
}

function hashOf(pet: NewPet): string {
  return fingerprintOf(pet).toString('base64url', 0, 9)
}

/** Renders the box that ticks all rows of the page; without a script, all of them count as ticked while it is. */
export const PICK_ALL = html`<label class="pick"><input type="checkbox" name="all" value="yes" form="many"><span class="visually-hidden">Tick all on this page</span></label>`

/** Renders the bar that is shown while a row is ticked (console.css counts them). The Enter key presses its first button, which sends nothing. */
export function manyBar(visit: MemberVisit): Html {
  const button = (status: string, words: string) =>
    html`<button class="button" name="status" value="${status}">${words}</button>`
  return html`<form class="many" id="many" method="post" action="${keepingPosition(PATH, visit.query)}" autocomplete="off" aria-label="Ticked animals">
    ${csrfField(visit)}${hidden('formId', newToken())}<button hidden formmethod="dialog"></button>
    ${PICK_ALL}<span class="ticked">selected</span> <button class="button ghost" type="reset">Clear</button>
    ${button('sold', 'Sell')} ${button('pending', 'Reserve')} ${button('available', 'Release')}
    ${visit.categories.names.size > 0 && html`<button class="button" name="move" value="ask" data-choose>Move to…</button>`}
    ${isManager(visit) && html`<details class="menu"><summary class="button ghost">…<span class="visually-hidden"> More</span></summary><div class="menu-box"><button class="button danger-outline" name="remove" value="ask">Remove…</button></div></details>`}</form>`
}

/** Asks for the category that the ticked animals get, where no script shows the menu of categories. */
function askForCategory(visit: MemberVisit): HtmlPage {
  const { categories, form: sent, query } = visit
  const words = (number: bigint) => withVisibleControls(categories.words(number))
  const options = Array.from(categories.names.keys(), (number) => [String(number), words(number)] as const)
  const carried = [...sent].filter(([name]) => name !== 'csrf' && name !== 'move')
  return formPage(visit, {
    title: 'Move to another category',
    section: 'animals',
    action: keepingPosition(PATH, query),
    submit: 'Move',
    cancel: keepingPosition('/animals', query),
    fields: html`${carried.map(([name, value]) => hidden(name, value))}${choice({ name: 'categoryId', label: 'Category', options, problems: [] })}`,
  })
}

async function handle(visit: MemberVisit): Promise<Outcome> {
  const { form: sent, query, store, who } = visit
  if (sent.has('move')) return askForCategory(visit)
  const isRemoval = sent.has('remove')
  const field = sent.has('status') ? 'status' : 'categoryId'
  const to = sent.get(field) ?? ''
  const value = fieldFromText(field, to)
  const chosen = tickedIn(sent)
  if (chosen.size > MOST || !(isRemoval || FIELDS[field].check(value)))
    return badRequestPage(400, `Tick at most ${ROWS} animals, and choose what to do with them.`)
  if (isRemoval && !isManager(visit)) return MANAGERS_ONLY_PAGE
  if (sent.get('remove') === 'ask' && chosen.size > 0) {
    const ids = encodeURIComponent([...chosen.keys()].join('.'))
    return { redirect: keepingPosition(`/animals/${ids}/remove`, query) }
  }
  const found = await Promise.all(
    Array.from(chosen, async ([id, shown]) => [shown, id, await store.pets.get(id)] as const),
  )
  const pets = found.flatMap(([shown, id, former]): BatchPet[] => {
    if (former === undefined || shown !== hashOf(former)) return [{ id, former, state: 'left' }]
    return isRemoval || former[field] !== value ? [{ id, former, state: 'waiting' }] : []
  })
  const next = (batch: string) => ({ redirect: `${keepingPosition('/animals', query, { batch })}#told` })
  if (pets.length === 0) return next(NONE)
  const form = hash('sha256', JSON.stringify([who.account.id, ...[...sent].filter(([name]) => name !== 'csrf')]))
  const did: NewBatch = isRemoval
    ? { form, action: 'removed', data: {} }
    : { form, action: 'changed', data: { field, to } }
  const batch = await store.batches.begin(did, pets, authorOf(visit))
  await work(visit, batch)
  return next(String(batch?.id ?? NONE))
}

/** Returns the hash of what was shown of each animal that is ticked. */
function tickedIn(sent: URLSearchParams): Map<bigint, string> {
  const ticked = new Set(sent.getAll('pick'))
  const tokens = sent.getAll('shown').map((token) => token.split('.', 2) as [digits: string, shown: string])
  const chosen = tokens.filter(([digits]) => sent.has('all') || ticked.has(digits))
  return new Map(
    chosen.flatMap(([digits, shown]) => {
      const id = int64FromText(digits)
      return id === undefined ? [] : [[id, shown] as const]
    }),
  )
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

// Many animals of a list at once: those that are ticked get another status or category, or are removed. Each is a change of its own,
// made only if the animal still is what its row showed. One notice names those that were left alone, and has one Undo for the others.
import { int64FromText } from '../../contract/int64.ts'
import { entryOf } from '../../contract/text/entry-of.ts'
import { describePet, textInWords } from '../../contract/pet-words.ts'
import { fieldFromText, FIELDS, type NewPet, type Pet } from '../../contract/pets.ts'
import { html, type Html, isolated, isolatedNames, withVisibleControls } from '../../http/html/html.ts'
import { fingerprintOf } from '../../store/idempotency.ts'
import { keepingPosition, ROWS } from './animal-addresses.ts'
import { authorOf, readHistory, removedPage } from './animal-history.ts'
import { formPage } from '../every-page/form-page.ts'
import { buttonForm, csrfField, hidden, choice, readNotice, signNotice } from '../every-page/forms.ts'
import { forManagers, MANAGERS_ONLY_PAGE } from '../every-page/managers.ts'
import { badRequestPage, notFoundPage } from '../every-page/problem-pages.ts'
import { counted, minute } from '../every-page/times.ts'
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
    ${csrfField(visit)}<button hidden formmethod="dialog"></button>
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
  const { form: sent } = visit
  if (sent.has('move')) return askForCategory(visit)
  const ticked = new Set(sent.getAll('pick'))
  const tokens = sent.getAll('shown').map((token) => token.split('.', 2) as [digits: string, text: string])
  const chosen = new Map(tokens.filter(([digits]) => sent.has('all') || ticked.has(digits)))
  const field = fieldIn(sent)
  const isRemoval = sent.has('remove')
  if (chosen.size > MOST || (!isRemoval && !sent.has('at') && valueOf(field, sent.get(field)) === undefined))
    return badRequestPage(400, `Tick at most ${ROWS} animals, and choose what to do with them.`)
  if (isRemoval && !isManager(visit)) return MANAGERS_ONLY_PAGE
  if (sent.get('remove') === 'ask' && chosen.size > 0) {
    const ids = encodeURIComponent([...chosen.keys()].join('.'))
    return { redirect: keepingPosition(`/animals/${ids}/remove`, visit.query) }
  }
  const act = isRemoval ? remove : sent.has('at') ? undo : change
  const attempt = async (digits: string, text: string) => {
    const pet = await find(visit, digits)
    if (pet !== undefined) return act(visit, pet, text, field)
    const id = int64FromText(digits)
    const isOwn = isRemoval && id !== undefined && (await isNewest(visit, { id }))
    return isOwn ? 'yes' : undefined
  }
  const [done, left]: [string[], string[]] = [[], []]
  for (const [digits, text] of chosen) {
    // Tried again, because what came first may be this form, sent twice.
    const former = (await attempt(digits, text)) ?? (await attempt(digits, text))
    if (former === undefined) left.push(digits.slice(0, 20))
    else if (former !== SAME) done.push(`${digits}.${former}`)
  }
  const did: Did = isRemoval ? 'removed' : sent.has('at') ? 'undone' : 'changed'
  const [to, at] = [sent.get(field) ?? '', String(visit.now)]
  const report = signNotice(visit, { did, many: done.join('_'), left: left.join('_'), field, to, at })
  return { redirect: `${keepingPosition('/animals', visit.query, report)}#told` }
}

type Field = 'status' | 'categoryId'
const fieldNamed = (name: string | null): Field => (name === 'status' ? 'status' : 'categoryId')
const fieldIn = (sent: URLSearchParams): Field => (sent.has('status') ? 'status' : fieldNamed(sent.get('field')))

/** Returns the value of a field; undefined for text that is none. */
function valueOf(field: Field, text: string | null): unknown {
  const value = fieldFromText(field, text ?? '')
  return FIELDS[field].check(value) ? value : undefined
}

async function find({ store }: MemberVisit, digits: string): Promise<Pet | undefined> {
  const id = int64FromText(digits)
  return id === undefined ? undefined : store.pets.get(id)
}

/** Nothing was to be done. */
const SAME = ''

async function save(visit: MemberVisit, pet: Pet, field: Field, value: unknown): Promise<string | undefined> {
  if (pet[field] === value) return SAME
  const { outcome } = await visit.store.pets.update(pet.id, pet, { ...pet, [field]: value }, authorOf(visit))
  return outcome === 'updated' ? String(pet[field]) : undefined
}

/** Changes an animal that is as its row showed it. Resolves with the former value; with undefined if somebody was first. */
async function change(visit: MemberVisit, pet: Pet, hash: string, field: Field): Promise<string | undefined> {
  const wanted = valueOf(field, visit.form.get(field))
  // The same change may be the visitor's own, by a form that was sent twice.
  if (hash !== hashOf(pet)) return pet[field] === wanted && (await isNewest(visit, pet)) ? SAME : undefined
  return save(visit, pet, field, wanted)
}

/** Takes a change back while it is the newest one of its animal. */
async function undo(visit: MemberVisit, pet: Pet, former: string, field: Field): Promise<string | undefined> {
  const value = valueOf(field, former)
  const isOwn =
    value !== undefined && (await isNewest(visit, pet, pet[field] === value ? undefined : visit.form.get('at')))
  return isOwn ? save(visit, pet, field, value) : undefined
}

/** Resolves with whether the visitor has made the newest change of the animal, at that time if given. */
async function isNewest({ store, who }: MemberVisit, { id }: Pick<Pet, 'id'>, at?: string | null): Promise<boolean> {
  const [newest] = await store.accounts.changesOf(id, 1)
  return newest?.accountId === who.account.id && (at === undefined || String(newest.at) === at)
}

async function remove(visit: MemberVisit, pet: Pet, hash: string): Promise<string | undefined> {
  if (hash !== hashOf(pet)) return undefined
  return (await visit.store.pets.remove(pet.id, pet, authorOf(visit))).outcome === 'removed' ? 'yes' : undefined
}

/** The address names one animal, or several with dots between their ids: a browser goes back to it, unlike to the answer to a form. */
async function askToRemove(visit: MemberVisit): Promise<Outcome> {
  const ids = visit.call.parameters['id']!.split('.', MOST)
  const pets = (await Promise.all(ids.map((id) => find(visit, id)))).filter((pet) => pet !== undefined)
  if (pets.length > 0) return confirmPage(visit, pets, ids.length > 1 ? '/animals' : `/animals/${ids[0]}`)
  const id = int64FromText(ids[0]!)
  return id === undefined ? notFoundPage(visit) : removedPage(visit, id)
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
    fields: html`${hidden('remove', 'yes')}${hidden('all', 'yes')}${pets.map((pet) => hidden('shown', `${pet.id}.${hashOf(pet)}`))}`,
  })
}

const DID = { changed: 'changed', undone: 'changed back', removed: 'removed' }
type Did = keyof typeof DID

/** Says what was done to many animals, which of them were left alone and why, and offers to undo the change. */
export async function manyNotice(visit: MemberVisit): Promise<Html | undefined> {
  const said = readNotice(visit, ['did', 'many', 'left', 'field', 'to', 'at'])
  const words = said && entryOf(DID, said.did)
  if (said === undefined || words === undefined) return undefined
  const list = (text: string) => text.split('_', MOST).filter((entry) => entry !== '')
  const [done, left] = [list(said.many), list(said.left).flatMap((text) => int64FromText(text) ?? [])]
  const to = textInWords(fieldNamed(said.field), said.to, visit.categories)
  const changes = (await Promise.all(left.map((id) => readHistory(visit, id)))).map(({ changes: [newest] }) => newest)
  return html`<div class="notice ${left.length > 0 ? 'warn' : 'good'}" role="status"><div>
      ${done.length > 0 && html`<p><strong>${counted(done.length, 'animal')}</strong> ${words}${said.to !== '' && html` to ${isolated(to)}`}.</p>`}
      ${done.length + left.length === 0 && html`<p>Nothing was to be changed: either no animal was ticked, or they have that already.</p>`}
      ${left.length > 0 && html`<p><strong>${counted(left.length, 'animal')}</strong> left alone, because somebody was first:</p>`}
      <ul>${changes.map((newest, nth) => html`<li>${newest ? html`${isolated(newest.subject)}: ${isolatedNames(newest.detail ?? '')} · ${newest.by}, ${minute(newest.at)}` : left[nth]}</li>`)}</ul></div>
    ${
      done.length > 0 &&
      words === DID.changed &&
      buttonForm(
        visit,
        keepingPosition(PATH, visit.query),
        html`${hidden('all', 'yes')}${hidden('field', said.field)}${hidden('at', said.at)}
        ${done.map((entry) => hidden('shown', entry))}<button class="button quiet" id="told">Undo</button>`,
      )
    }</div>`
}

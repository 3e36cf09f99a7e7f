// The page that adds animals, one after the other: category and status stay, and those that were just added are listed below the form,
// where their Undo removes them again. With adding.js the page stays, too, and asks for a line of that list at a time.
import { hash } from 'node:crypto'
import { newToken } from '../../accounts/sessions.ts'
import { int64FromText } from '../../contract/int64.ts'
import { fieldFromText, FIELD_NAMES, FIELDS, type NewPet, type Pet } from '../../contract/pets.ts'
import { inWords, SHOWN_FIELDS } from '../../contract/pet-words.ts'
import { FieldProblem, InvalidFields } from '../../contract/errors.ts'
import { fingerprintOf, idempotencyFor } from '../../store/idempotency.ts'
import { FETCHING_POLICY } from '../../http/html/security-headers.ts'
import { assetAddress } from '../every-page/assets.ts'
import { withAnimal } from './animal.ts'
import { withQuery } from './animal-addresses.ts'
import { animalField, readAnimal, settleCategory, suggestedCategories } from './animal-form.ts'
import { authorOf } from './animal-history.ts'
import { formPage } from '../every-page/form-page.ts'
import { buttonForm, hidden, type Problems, readNotice, signNotice } from '../every-page/forms.ts'
import { html, type Html, isolated } from '../../http/html/html.ts'
import { HOUR_MS } from '../every-page/times.ts'
import { type ConsoleRoute, forMembers, type HtmlPage, type MemberVisit, type Outcome } from '../every-page/visit.ts'

const PATH = '/animals/new'

export const animalAddingRoutes: readonly ConsoleRoute[] = [
  forMembers('GET', PATH, (visit) => addPage(visit)),
  forMembers('POST', PATH, add, { keepsTyped: true }),
  forMembers('POST', '/animals/{id}/undo', withAnimal(undo)),
]

/** How many of the animals that were just added are listed: the address has their ids. */
const LISTED = 20

/** How long those who have added an animal can undo that. */
const UNDO_MS = HOUR_MS

async function addPage(visit: MemberVisit, problems: Problems = []): Promise<HtmlPage> {
  const { form: typed, query, categories } = visit
  const value = (name: string) => typed.get(name) ?? keptValue(query, name)
  const parts = { value, problems, categories, suggested: await suggestedCategories(visit) }
  const added = (await Promise.all(addedIds(query).map((id) => ownAddition(visit, id)))).filter(
    (pet) => pet !== undefined,
  )
  const one = (look: string) => html`<button class="button ${look}" name="next" value="list">Add animal</button>`
  const another = (look: string) =>
    html`<button class="button ${look}" name="next" value="another">Add and add another</button>`
  const [last, undone] = [problems.length === 0 && added[0], readNotice(visit, ['undone'])?.undone]
  const said = undone ? `${undone} is no longer in the list` : last && `${last.name} added (${last.id})`
  const page = formPage(visit, {
    title: 'Add an animal',
    section: 'animals',
    problems,
    above: html`${said && html`<p class="notice good" role="status">${isolated(said)}.</p>`}`,
    action: withQuery(PATH, { added: query.get('added') ?? '' }),
    // The Enter key presses the first button.
    submit: added.length > 0 ? html`${another('primary')} ${one('')}` : html`${one('primary')} ${another('')}`,
    cancel: '/animals',
    cancelWords: added.length > 0 ? 'Done' : 'Cancel',
    // A button beside the category goes where the last one would have gone.
    fields: html`${typed.has('next') && hidden('next', typed.getAll('next').at(-1)!)}${hidden('formId', value('formId') || newToken())}${FIELD_NAMES.map((name, nth) => animalField(name, { ...parts, focus: nth === 0 }))}`,
    below: html`${added.length === 0 && html`<p class="quiet-text">Many at once? <a class="button quiet" href="/animals/import">Import a spreadsheet</a></p>`}<section data-who="${visit.who.account.id}" ${added.length === 0 && html`hidden`}>${NOT_ADDED}<h2>Just added</h2><ul class="added" aria-live="polite" aria-relevant="additions">${added.map((pet) => addedItem(visit, pet))}</ul></section>`,
  })
  const head = html`<script src="${assetAddress('adding.js')}" type="module"></script>`
  return { ...page, head, headers: { 'Content-Security-Policy': FETCHING_POLICY } }
}

/** What adding.js shows of animals that are not added yet. */
const NOT_ADDED = html`<div class="notice warn" aria-live="assertive" hidden><p>Your session has ended. What is not added yet is kept here.</p>
    <p class="actions"><a class="button" href="/sign-in?next=${PATH}">Sign in</a></p></div>
  <div class="notice warn" aria-live="assertive" hidden><p>You typed some of these animals before. They are not added yet.</p>
    <p class="actions"><button class="button">Add them</button><button class="button quiet" value="discard">Discard them</button></p></div>
  <template><li><span><strong><bdi></bdi></strong> <span class="quiet-text"></span></span><p class="problem" aria-live="assertive"></p><span class="offers"></span>
    <button class="button quiet" value="edit">Edit</button><button class="button quiet">Try again</button></li></template>`

/** Returns the category or the status of the animal before: a link fills in no other text. */
function keptValue(query: URLSearchParams, name: string): string {
  const kept = SHOWN_FIELDS.slice(1).find((field) => field === name)
  const text = query.get(name) ?? ''
  return kept !== undefined && FIELDS[kept].check(fieldFromText(kept, text)) ? text : ''
}

function addedIds(query: URLSearchParams): bigint[] {
  const ids = (query.get('added') ?? '').split('.').map((text) => int64FromText(text))
  return [...new Set(ids.filter((id) => id !== undefined))].slice(0, LISTED)
}

/** Resolves with the animal if the visitor has added it in the last hour. */
async function ownAddition({ store, who, now }: MemberVisit, id: bigint): Promise<Pet | undefined> {
  const [pet, addition] = await Promise.all([store.pets.get(id), store.pets.addition(id)])
  return addition?.by === who.account.id && now - addition.at < UNDO_MS ? pet : undefined
}

function addedItem(visit: MemberVisit, pet: Pet): Html {
  const words = SHOWN_FIELDS.slice(1).map((name) => inWords(pet, name, visit.categories))
  const action = withQuery(`/animals/${pet.id}/undo`, Object.fromEntries(visit.query))
  const of = html`<span class="visually-hidden"> ${pet.name}</span>`
  return html`<li><span><strong>${isolated(pet.name)}</strong> <span class="quiet-text">${isolated(words.join(', '))}</span></span>
    <a class="button quiet" href="/animals/${pet.id}?edit=yes">Edit${of}</a>
    ${buttonForm(visit, action, html`<button class="button quiet">Undo${of}</button>`)}</li>`
}

async function add(visit: MemberVisit): Promise<Outcome> {
  const { form: typed, query, store, who, now } = visit
  const unsettled = await settleCategory(visit)
  const parsed = unsettled ?? readAnimal((name) => typed.get(name) ?? '', visit.categories)
  if (parsed instanceof InvalidFields) return addPage(visit, parsed.problems)
  const key = idempotencyKey(typed.get('formId') ?? '', parsed)
  const by = who.account.id
  const created = await store.pets.create(parsed, idempotencyFor(by, key, parsed, now), { at: now, by })
  if (!('pet' in created))
    return addPage(visit, [
      new FieldProblem('', 'This form is already being processed; send it again in a few seconds.'),
    ])
  const { id } = created.pet
  const next = typed.getAll('next').at(-1)
  const list = withQuery('/animals', signNotice(visit, { added: String(id) }))
  if (next !== 'another' && next !== 'line') return { redirect: list }
  const { name: _name, ...kept } = Object.fromEntries(FIELD_NAMES.map((name) => [name, String(parsed[name] ?? '')]))
  const added = [...new Set([id, ...addedIds(query)])].slice(0, LISTED).join('.')
  const page = withQuery(PATH, { added, ...kept })
  if (next === 'another') return { redirect: page }
  const body = html`<ul class="added" data-page="${page}" data-list="${list}">${addedItem(visit, created.pet)}</ul>`
  return { title: 'Added', section: 'animals', body }
}

/** A form that is sent twice adds one animal. If the visitor goes back and edits the form, it adds another animal. */
function idempotencyKey(formId: string, newPet: NewPet): string {
  return `console:${hash('sha256', `${formId} ${fingerprintOf(newPet).toString('hex')}`)}`
}

/** Removes an animal that the visitor has just added, unless it was changed since: then its page says by whom. */
async function undo(visit: MemberVisit, pet: Pet): Promise<Outcome> {
  const [changed] = await visit.store.accounts.changesOf(pet.id, 1)
  const isOwn = (await ownAddition(visit, pet.id)) !== undefined
  const remove = () => visit.store.pets.remove(pet.id, pet, authorOf(visit))
  const isRemoved = isOwn && changed === undefined && (await remove()).outcome !== 'conflict'
  const said = { ...Object.fromEntries(visit.query), ...signNotice(visit, { undone: pet.name }) }
  if (isRemoved) return { redirect: withQuery(PATH, said) }
  return { redirect: withQuery(`/animals/${pet.id}`, isOwn ? { overtaken: String(changed?.at) } : {}) }
}

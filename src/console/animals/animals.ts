// The list of animals, what is in the shop or of a status, a page at a time, from the same store calls as the API. The search above it
// finds animals by id, or by words that are anywhere in the name.
import type { Config } from '../../config.ts'
import { ALLOWED } from '../../contract/environments.ts'
import type { Pet } from '../../contract/pets.ts'
import { foldForSearch } from '../../contract/text/search-words.ts'
import { Problem } from '../../contract/errors.ts'
import { int64FromText } from '../../contract/int64.ts'
import { COUNTED_MOST } from '../../store/pet-counts.ts'
import { NAMES_READ } from '../../store/search-pets.ts'
import { IN_SHOP, listAddress, SORTS, withFilters } from './animal-addresses.ts'
import { type Asked, countOf, type Listed, readAsked, readPage, type StatusCounts } from './animal-list.ts'
import { stepTaken, type Taken } from './animal-steps.ts'
import { batchNotice } from './animal-batches.ts'
import { animalTable } from './animal-table.ts'
import { countWords, toolbar } from './animal-toolbar.ts'
import { emptyState, html, type Html, isolated } from '../../http/html/html.ts'
import { assetAddress } from '../every-page/assets.ts'
import { FETCHING_POLICY } from '../../http/html/security-headers.ts'
import { paging } from '../every-page/paging.ts'
import { readNotice } from '../every-page/forms.ts'
import { count } from '../every-page/times.ts'
import { type ConsoleRoute, forMembers, type HtmlPage, type MemberVisit, type Outcome } from '../every-page/visit.ts'

export const animalsRoutes: readonly ConsoleRoute[] = [forMembers('GET', '/animals', animalsPage)]

async function animalsPage(visit: MemberVisit): Promise<Outcome> {
  const { query: raw, store } = visit
  const asked = readAsked(raw, IN_SHOP)
  if (asked instanceof Problem)
    return page(visit, { limit: 1, inShop: true, sort: 'newest', q: '', words: [] }, asked.message)
  const { q, words } = asked
  const id = raw.has('cursor') || raw.has('at') ? undefined : int64FromText(q)
  // An id that was typed; if there is none, names are searched, also for words that are numbers.
  if (id !== undefined && (await store.pets.get(id)) !== undefined)
    return { redirect: withFilters(`/animals/${id}`, { ...asked, q: '' }) }
  if (q === '' || words.length > 0) return page(visit, asked, await readPage(visit, asked))
  return page(visit, asked, html`${isolated(q)} has no letter, digit or symbol to search for.`)
}

/** Shows what was found, or why nothing was sought. */
async function page(visit: MemberVisit, asked: Asked, found: Listed | Html | string): Promise<HtmlPage> {
  const taken = await stepTaken(visit)
  const isFound = typeof found === 'object' && 'pets' in found
  const content = isFound
    ? html`${addedNotice(visit, found.pets)}${await results(visit, asked, found, taken)}`
    : html`<p class="notice bad" role="alert">${found} <a href="${listAddress({})}">Show all animals</a></p>`
  return {
    title: 'Animals',
    section: 'animals',
    ...(!isFound && { status: 400 }),
    // list.js takes a step, and reads the list again, without leaving the page.
    headers: { 'Content-Security-Policy': FETCHING_POLICY },
    head: html`<script src="${assetAddress('list.js')}" defer></script>`,
    body: html`${toolbar(visit, asked, isFound ? found : undefined)}${await batchNotice(visit)}${content}<p class="visually-hidden" role="status" id="said">${taken?.said}</p>`,
  }
}

function addedNotice(visit: MemberVisit, found: readonly Pet[]): Html | undefined {
  const id = readNotice(visit, ['added'])?.added
  if (id === undefined) return undefined
  const added = found.find((pet) => String(pet.id) === id)
  return html`<p class="notice good" role="status">${added === undefined ? 'Animal' : isolated(added.name)} added (${id}).
    <a href="/animals/new">Add another</a></p>`
}

async function results(visit: MemberVisit, asked: Asked, found: Listed, taken?: Taken): Promise<Html> {
  const { counts, sort, pages, total } = found
  const { q, status, inShop } = asked
  const shown = { ...found, pets: withTaken(found, taken) }
  const range = rangeWords(found)
  const table = shown.pets.length > 0 && (await animalTable(visit, asked, shown, range, taken))
  const place = paging(pages, range)
  if (q === '') return html`${table || nothing(asked, counts, visit.config)}${place}`
  const all = html`<a href="${listAddress({ ...asked, q: '' })}">Show all${status && ` ${status}`} animals${inShop && ' in the shop'}</a>`
  if (!table && pages.searchOlder === undefined)
    return emptyState(pages.first === undefined ? 'No animal matches' : 'No more animals match', all)
  return html`<p class="quiet-text">${total === undefined || total < found.pets.length ? 'Animals found' : `${countWords(total)} found`} for ${isolated(q)}, ${SORTS[sort].toLowerCase()}. ${all}</p>
    ${table}
    ${pages.searchOlder && html`<p class="quiet-text" role="status">This page has searched ${count(NAMES_READ)} names. Older animals may match too.</p>`}
    ${place}`
}

/** Says which of how many animals are shown, as far as that is known. */
function rangeWords({ pets: { length }, start, total = 0 }: Listed): string {
  const last = start + length - 1
  const isKnown = start > 0 && (total > COUNTED_MOST || last <= total)
  if (length === 0 || total < length) return ''
  return `${isKnown ? `${count(start)}–${count(last)}` : count(length)} of ${countWords(total)}`
}

/** The animal of the step that was just taken keeps its place, also if it is no longer among those that were found. */
function withTaken({ pets, sort }: Listed, taken?: Taken): readonly Pet[] {
  if (taken === undefined || pets.some(({ id }) => id === taken.pet.id)) return pets
  const { id, name } = taken.pet
  const follows = (pet: Pet) =>
    sort === 'name' ? foldForSearch(pet.name) > foldForSearch(name) : sort === 'oldest' ? pet.id > id : pet.id < id
  const at = pets.findIndex(follows)
  return pets.toSpliced(at < 0 ? pets.length : at, 0, taken.pet)
}

function nothing(query: Asked, counts: StatusCounts, { environment, given, program }: Config): Html {
  if (query.before !== undefined)
    return emptyState('No older animals', html`<a href="${listAddress(query)}">Go to the newest</a>`)
  if (query.status !== undefined || query.categoryId !== undefined || countOf(counts, {}) !== 0)
    return emptyState('No animal matches', html`<a href="${listAddress({})}">Show all animals</a>`)
  const first = html`<a class="button" href="/animals/import">Import a spreadsheet</a> <a class="button primary" href="/animals/new">Add an animal</a>`
  // Without a name the command reaches only the default database, and no page names one.
  const seed =
    ALLOWED.madeUpAnimals[environment] &&
    !given.has('database') &&
    html`</p><p>Or fill the store with made-up ones: <code>${program} seed --count 100</code>`
  return emptyState('No animals yet', html`${first}${seed}`)
}

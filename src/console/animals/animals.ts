// The list of animals: newest first, what is in the shop or of a status, a page at a time, from the same store calls as the API. The
// search above it finds animals by id, or by words that are anywhere in the name.
import type { Config } from '../../config.ts'
import { ALLOWED } from '../../contract/environments.ts'
import { encodeCursor, parseListQuery } from '../../contract/list-query.ts'
import type { Pet } from '../../contract/pets.ts'
import { entryOf } from '../../contract/text/entry-of.ts'
import { wordsOf } from '../../contract/text/search-words.ts'
import { Problem } from '../../contract/errors.ts'
import { int64FromText } from '../../contract/int64.ts'
import { DELIMITERS, renderCsv } from '../../contract/pet-csv.ts'
import type { PetList } from '../../store/pet-list.ts'
import { NAMES_READ } from '../../store/search-pets.ts'
import type { FoundPets } from '../../store/store.ts'
import { ACCEPTED, ALL, CATEGORY, IN_SHOP, listAddress, withFilters } from './animal-addresses.ts'
import { stepTaken, type Taken } from './animal-steps.ts'
import { manyNotice } from './animal-many.ts'
import { animalTable } from './animal-table.ts'
import { countOf, countWords, type StatusCounts, toolbar } from './animal-toolbar.ts'
import { emptyState, html, type Html, isolated } from '../../http/html/html.ts'
import { FETCHING_POLICY } from '../../http/html/security-headers.ts'
import { paging } from '../every-page/paging.ts'
import { badRequestPage } from '../every-page/problem-pages.ts'
import { readNotice } from '../every-page/forms.ts'
import { searchAlone } from '../every-page/readings.ts'
import { count } from '../every-page/times.ts'
import { type ConsoleRoute, forMembers, type MemberVisit, type Outcome } from '../every-page/visit.ts'

export const animalsRoutes: readonly ConsoleRoute[] = [
  forMembers('GET', '/animals', animalsPage),
  forMembers('GET', '/animals.csv', csvFile),
]

/** What a page of animals shows below its toolbar, and the counts in that. */
interface Shown {
  status?: number
  counts?: StatusCounts
  notice?: Html | undefined
  content: Html
}

async function animalsPage(visit: MemberVisit): Promise<Outcome> {
  const parsed = readQuery(visit.query, IN_SHOP)
  const query: PetList = parsed instanceof Problem ? { limit: 1, inShop: true } : parsed
  const typed = visit.query.get('q')?.trim() ?? ''
  const taken = await stepTaken(visit, 'list')
  const find = () => (typed === '' ? list(visit, query, taken) : search(visit, query, typed, taken))
  const shown = parsed instanceof Problem ? refused(parsed.message) : await find()
  if ('redirect' in shown) return shown
  return {
    title: 'Animals',
    section: 'animals',
    ...(shown.status !== undefined && { status: shown.status }),
    // console.js takes a step without leaving the page.
    headers: { 'Content-Security-Policy': FETCHING_POLICY },
    body: html`${await toolbar(visit, query, typed, shown.counts)}${await manyNotice(visit)}${shown.notice}${shown.content}<p class="visually-hidden" role="status" id="said">${taken?.said}</p>`,
  }
}

/** How many animals of a file are read at a time. */
const BATCH = 1000

/** Returns all animals that the list or the search shows, page after page, in its order. */
function csvFile({ store, categories, query: raw, left }: MemberVisit): Outcome {
  const parsed = readQuery(raw, ALL)
  if (parsed instanceof Problem) return badRequestPage(400, parsed.message)
  const { before: _before, after: _after, ...filters } = parsed
  const delimiter = entryOf(DELIMITERS, raw.get('delimiter') ?? 'comma')
  if (delimiter === undefined)
    return badRequestPage(400, `The delimiter must be one of ${Object.keys(DELIMITERS).join(', ')}.`)
  const typed = raw.get('q')?.trim() ?? ''
  const words = wordsOf(typed)
  if (typed !== '' && words.length === 0) return badRequestPage(400, 'A search needs a letter, digit or symbol.')
  async function read(before?: bigint): Promise<Pick<FoundPets, 'pets' | 'next'>> {
    const page = { ...filters, limit: BATCH, ...(before !== undefined && { before }) }
    if (typed !== '') return store.pets.search({ ...page, words, signal: left })
    const pets = await store.pets.list(page)
    return { pets, next: pets.length < BATCH ? undefined : pets.at(-1)!.id }
  }
  async function* batches(): AsyncGenerator<Pet[]> {
    for (let page = await read(); ; page = await read(page.next)) {
      yield page.pets
      if (page.next === undefined) return
    }
  }
  const content = renderCsv(batches(), categories, delimiter)
  return { file: 'animals.csv', type: 'text/csv; charset=utf-8', content }
}

/** Repeats no text of the address, which may be somebody else's link. */
const NO_SUCH_LIST = new Problem('The address names a status, a category or a place in the list that does not exist.')

/**
 * Reads status, category and position in the list: `cursor` is where older animals start, `newer` where newer ones end. Without a
 * status the list shows what is in the shop; a file has all.
 */
function readQuery(raw: URLSearchParams, whenAbsent: typeof ALL | typeof IN_SHOP): PetList | Problem {
  const category = raw.get(CATEGORY) ?? ''
  const categoryId = int64FromText(category)
  if (category !== '' && categoryId === undefined) return NO_SUCH_LIST
  const shown = raw.get('status') ?? whenAbsent
  const sent = new URLSearchParams(ACCEPTED.flatMap(({ name }) => (raw.has(name) ? [[name, raw.get(name)!]] : [])))
  if (shown === ALL || shown === IN_SHOP) sent.delete('status')
  if (raw.has('newer')) sent.set('cursor', raw.get('newer')!)
  const parsed = parseListQuery(sent)
  // The words of the API repeat what came.
  const isOneWord = [...sent.values()].every((value) => /^[a-z]{0,20}$/.test(value))
  if (parsed instanceof Problem) return isOneWord ? parsed : NO_SUCH_LIST
  const { before, ...query } = parsed
  return {
    ...query,
    ...(categoryId !== undefined && { categoryId }),
    inShop: shown === IN_SHOP,
    ...(before !== undefined && (raw.has('newer') ? { after: before } : { before })),
  }
}

function addedNotice(visit: MemberVisit, found: readonly Pet[]): Html | undefined {
  const id = readNotice(visit, ['added'])?.added
  if (id === undefined) return undefined
  const added = found.find((pet) => String(pet.id) === id)
  return html`<p class="notice good" role="status">${added === undefined ? 'Animal' : isolated(added.name)} added (${id}).
    <a href="/animals/new">Add another</a></p>`
}

async function list(visit: MemberVisit, query: PetList, taken?: Taken): Promise<Shown> {
  const { pets } = visit.store
  const { categoryId } = query
  const { after, ...first } = query
  const listing = pets.list({ ...query, limit: query.limit + 1 })
  const [found, counts] = await Promise.all([listing, pets.countByStatus(categoryId)])
  // No newer page follows: shows the first page instead, which is never shorter.
  if (after !== undefined && found.length <= query.limit) return list(visit, first, taken)
  const notice = addedNotice(visit, found)
  // The one animal too many is at the end that the query goes towards.
  const page = after === undefined ? found.slice(0, query.limit) : found.slice(-query.limit)
  const table = animalTable('Animals, newest first', page, visit, taken)
  const shown = { notice, counts }
  if (page.length === 0) return { ...shown, content: taken ? table : nothing(query, counts, visit.config) }
  const hasOlder = after !== undefined || found.length > page.length
  const isFirst = query.before === undefined && after === undefined
  const pages = {
    newest: isFirst ? undefined : listAddress(query),
    newer: isFirst ? undefined : listAddress(query, { newer: encodeCursor(page[0]!.id) }),
    older: hasOlder ? listAddress(query, { cursor: encodeCursor(page.at(-1)!.id) }) : undefined,
  }
  return { ...shown, content: html`${table}${paging(pages)}` }
}

function nothing(query: PetList, counts: StatusCounts, { environment, given, program }: Config): Html {
  if (query.before !== undefined)
    return emptyState('No older animals', html`<a href="${listAddress(query)}">Go to the newest</a>`)
  if (query.status !== undefined || query.categoryId !== undefined || countOf(counts, {}) !== 0)
    return emptyState('No animal matches', html`<a href="${listAddress({})}">Show all animals</a>`)
  // Without a name the command reaches only the default database, and no page names one.
  const seed =
    ALLOWED.madeUpAnimals[environment] &&
    !given.has('database') &&
    html`, or fill the store with made-up ones: <code>${program} seed --count 100</code>`
  return emptyState('No animals yet', html`<a href="/animals/new">Add the first one</a>${seed}`)
}

/** Opens the animal whose id was typed. If there is none, searches names, also for words that are numbers. */
async function search(
  visit: MemberVisit,
  query: PetList,
  typed: string,
  taken?: Taken,
): Promise<Shown | { redirect: string }> {
  const { store, query: raw } = visit
  const id = raw.has('cursor') ? undefined : int64FromText(typed)
  if (id !== undefined && (await store.pets.get(id)) !== undefined)
    return { redirect: withFilters(`/animals/${id}`, query) }
  const words = wordsOf(typed)
  if (words.length === 0) return refused(html`${isolated(typed)} has no letter, digit or symbol to search for.`)
  const { after: _after, ...page } = query
  const found = await searchAlone(visit, (signal) => store.pets.search({ ...page, words, isCounted: true, signal }))
  return { counts: found.counts, content: results(found, visit, typed, page, taken) }
}

function refused(message: Html | string): Shown {
  const content = html`<p class="notice bad" role="alert">${message} <a href="${listAddress({})}">Show all animals</a></p>`
  return { status: 400, content }
}

function results(found: FoundPets, visit: MemberVisit, q: string, query: PetList, taken?: Taken): Html {
  const { pets, next, isFull, counts } = found
  const { before, ...filters } = query
  const isFirst = before === undefined
  const { status, inShop } = filters
  const all = html`<a href="${listAddress(filters)}">Show all${status && ` ${status}`} animals${inShop && ' in the shop'}</a>`
  const table = (pets.length > 0 || taken) && animalTable('Animals that match', pets, visit, taken)
  if (!table && next === undefined) return emptyState(isFirst ? 'No animal matches' : 'No more animals match', all)
  const following = next === undefined ? undefined : listAddress(filters, { q, cursor: encodeCursor(next) })
  const pages = {
    first: isFirst ? undefined : listAddress(filters, { q }),
    ...(isFull ? { more: following } : { searchOlder: following }),
  }
  const number = countOf(counts, filters)
  // Those with a status that only a later release knows are not counted.
  const isKnown = number !== undefined && number >= pets.length
  return html`<p class="quiet-text">${isKnown ? `${countWords(number)} found` : 'Animals found'} for ${isolated(q)}, newest first. ${all}</p>
    ${table}
    ${following && !isFull && html`<p class="quiet-text" role="status">This page has searched ${count(NAMES_READ)} names. Older animals may match too.</p>`}
    ${paging(pages)}`
}

// The list of animals: newest first, what is in the shop or of a status, a page at a time, from the same store calls as the API. The
// search above it finds animals by id, or by the beginnings of words of the name.
import type { Config } from '../../config.ts'
import { ALLOWED } from '../../contract/environments.ts'
import { encodeCursor, parseListQuery } from '../../contract/list-query.ts'
import type { Pet, PetStatus } from '../../contract/pets.ts'
import { entryOf } from '../../contract/text/entry-of.ts'
import { Problem } from '../../contract/errors.ts'
import { int64FromText } from '../../contract/int64.ts'
import { DELIMITERS, renderCsv } from '../../contract/pet-csv.ts'
import type { PetList } from '../../store/pet-list.ts'
import { wordsOf } from '../../store/search-pets.ts'
import type { FoundPets, Place } from '../../store/store.ts'
import { ACCEPTED, ALL, CATEGORY, IN_SHOP, listAddress, withFilters } from './animal-addresses.ts'
import { stepTaken, type Taken } from './animal-steps.ts'
import { manyNotice } from './animal-many.ts'
import { animalTable } from './animal-table.ts'
import { isExact, type StatusCounts, toolbar, total } from './animal-toolbar.ts'
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
interface Shown extends StatusCounts {
  status?: number
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
    body: html`${await toolbar(visit, query, typed, shown)}${await manyNotice(visit)}${shown.notice}${shown.content}<p class="visually-hidden" role="status" id="said">${taken?.said}</p>`,
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
  async function read(after?: Place): Promise<Pick<FoundPets, 'pets' | 'next'>> {
    // More than a search that is newest first can have: if one grows past that, its next page starts anew.
    if (typed !== '') return store.pets.search({ ...filters, words, after, limit: 3 * BATCH, signal: left })
    const pets = await store.pets.list({ ...filters, limit: BATCH, ...(after && { before: after.id }) })
    return { pets, next: pets.length < BATCH ? undefined : { word: '', id: pets.at(-1)!.id } }
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
 * status the list shows what is in the shop; a file has all, as the addresses of earlier releases mean.
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
  const counting = categoryId === undefined ? pets.countByStatus() : pets.countInCategory(categoryId)
  const [found, counts] = await Promise.all([pets.list({ ...query, limit: query.limit + 1 }), counting])
  const isCounted = categoryId === undefined || isExact(counts)
  // No newer page follows: shows the first page instead, which is never shorter.
  if (after !== undefined && found.length <= query.limit) return list(visit, first, taken)
  const notice = addedNotice(visit, found)
  // The one animal too many is at the end that the query goes towards.
  const page = after === undefined ? found.slice(0, query.limit) : found.slice(-query.limit)
  const table = animalTable('Animals, newest first', page, visit, taken)
  const shown = { notice, counts, isCounted }
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

function nothing(query: PetList, counts: Record<PetStatus, number>, { environment, given, program }: Config): Html {
  if (query.before !== undefined)
    return emptyState('No older animals', html`<a href="${listAddress(query)}">Go to the newest</a>`)
  if (query.status !== undefined || query.categoryId !== undefined || total(counts, {}) > 0)
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
  const from = raw.get('from')
  const id = from === null ? int64FromText(typed) : undefined
  if (id !== undefined && (await store.pets.get(id)) !== undefined)
    return { redirect: withFilters(`/animals/${id}`, query) }
  const after = from === null ? undefined : placeFrom(from)
  if (after === null) return refused('This page of the search does not exist.')
  const words = wordsOf(typed)
  if (words.length === 0) return refused(html`${isolated(typed)} has no letter, digit or symbol to search for.`)
  const { before: _before, after: _after, ...filters } = query
  const found = await searchAlone(visit, (signal) => store.pets.search({ ...filters, words, after, signal }))
  return { ...found, content: results(found, visit, typed, filters, taken) }
}

/** Parses a place that `results` has put into an address; returns null for any other text. */
function placeFrom(text: string): Place | null {
  const [, digits = '', word = ''] = /^(\S+) (\S*)$/.exec(text) ?? []
  const id = int64FromText(digits)
  return id !== undefined && (wordsOf(word)[0] ?? '') === word ? { id, word } : null
}

function refused(message: Html | string): Shown {
  const content = html`<p class="notice bad" role="alert">${message} <a href="${listAddress({})}">Show all animals</a></p>`
  return { status: 400, content }
}

function results(found: FoundPets, visit: MemberVisit, q: string, filters: PetList, taken?: Taken): Html {
  const { pets, next, isWhole, counts, isCounted, order } = found
  const isFirst = !visit.query.has('from')
  const { status, inShop } = filters
  const all = html`<a href="${listAddress(filters)}">Show all${status && ` ${status}`} animals${inShop && ' in the shop'}</a>`
  const behind =
    !isWhole &&
    html`<p class="notice warn" role="status">The search may not know all animals yet; it is being brought up to date.</p>`
  const table = animalTable('Animals that match', pets, visit, taken)
  if (pets.length === 0 && next === undefined && !taken)
    return html`${behind}${emptyState(isFirst ? 'No animal matches' : 'No more animals match', all)}`
  const pages = {
    first: isFirst ? undefined : listAddress(filters, { q }),
    more: next && listAddress(filters, { q, from: `${next.id} ${next.word}` }),
  }
  return html`${behind}
    <p class="quiet-text">${count(total(counts, filters))} ${!isCounted && 'or more'} found for ${isolated(q)}, ${order === 'newest' ? 'newest first' : 'in the order of the matching word'}. ${all}</p>
    ${(pets.length > 0 || taken) && table}
    ${next && pets.length < filters.limit && html`<p>There may be more: this page has looked at as many animals as one page does.</p>`}
    ${paging(pages)}`
}

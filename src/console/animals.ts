// The list of animals: newest first, filtered by status, a page at a time, from the same store calls as the API. The search above it
// finds animals by id, or by the beginnings of words of the name.
import type { Config } from '../config.ts'
import { encodeCursor, parseListQuery } from '../contract/list-query.ts'
import type { Pet } from '../contract/pets.ts'
import { entryOf } from '../contract/entry-of.ts'
import { Problem } from '../contract/errors.ts'
import { int64FromText } from '../contract/int64.ts'
import { quote } from '../contract/json.ts'
import { DELIMITERS, renderCsv } from '../contract/pet-csv.ts'
import type { PetList } from '../store/pet-list.ts'
import { wordsOf } from '../store/search-pets.ts'
import type { FoundPets, Place } from '../store/store.ts'
import { ACCEPTED, CATEGORY, chosenQuery, listAddress, withFilters } from './animal-addresses.ts'
import { stepNotice } from './animal-steps.ts'
import { animalTable } from './animal-table.ts'
import { isExact, type StatusCounts, toolbar, total } from './animal-toolbar.ts'
import { emptyState, html, type Html, isolated } from '../http/html.ts'
import { paging } from './paging.ts'
import { badRequestPage } from './problem-pages.ts'
import { count } from './times.ts'
import { type ConsoleRoute, forMembers, type MemberVisit, type Outcome } from './visit.ts'

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

const REMOVED = html`<p class="notice good" role="status">The animal was removed. <a href="/animals/changes">Recent changes</a> show
  what it was.</p>`

async function animalsPage(visit: MemberVisit): Promise<Outcome> {
  const parsed = readQuery(visit.query)
  const query: PetList = parsed instanceof Problem ? { limit: 1 } : parsed
  const typed = visit.query.get('q')?.trim() ?? ''
  const [shown, done] = await Promise.all([
    parsed instanceof Problem
      ? refused(parsed.message)
      : typed === ''
        ? list(visit, parsed)
        : search(visit, parsed, typed),
    stepNotice(visit, 'list'),
  ])
  if ('redirect' in shown) return shown
  return {
    title: 'Animals',
    section: 'animals',
    ...(shown.status !== undefined && { status: shown.status }),
    body: html`${toolbar(visit, query, typed, shown)}${done}${visit.query.has('removed') && REMOVED}${shown.notice}${shown.content}`,
  }
}

/** How many animals of a file are read at a time. */
const BATCH = 1000

/** Returns all animals that the list or the search shows, page after page, in its order. */
function csvFile({ store, categories, query: raw }: MemberVisit): Outcome {
  const parsed = readQuery(raw)
  if (parsed instanceof Problem) return badRequestPage(400, parsed.message)
  const { before: _before, after: _after, ...filters } = parsed
  const { status, categoryId } = filters
  const delimiter = entryOf(DELIMITERS, raw.get('delimiter') ?? 'comma')
  if (delimiter === undefined)
    return badRequestPage(400, `The delimiter must be one of ${Object.keys(DELIMITERS).join(', ')}.`)
  const typed = raw.get('q')?.trim() ?? ''
  const words = wordsOf(typed)
  if (typed !== '' && words.length === 0) return badRequestPage(400, 'A search needs a letter, digit or symbol.')
  async function read(after?: Place): Promise<Pick<FoundPets, 'pets' | 'next'>> {
    // More than a search that is newest first can have: if one grows past that, its next page starts anew.
    if (typed !== '') return store.pets.search({ ...filters, words, after, limit: 3 * BATCH })
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
  const category = categoryId === undefined ? '' : `-category-${categoryId}`
  const file = `animals${category}${status ? `-${status}` : ''}${typed && '-found'}.csv`
  return { file, type: 'text/csv; charset=utf-8', content }
}

/** Reads status, category and position in the list: `cursor` is where older animals start, `newer` where newer ones end. */
function readQuery(raw: URLSearchParams): PetList | Problem {
  const category = raw.get(CATEGORY) ?? ''
  const categoryId = int64FromText(category)
  if (category !== '' && categoryId === undefined)
    return new Problem(`category must be a number, got ${quote(category)}.`)
  const sent = Object.fromEntries(ACCEPTED.map(({ name }) => [name, raw.get(name) ?? undefined]))
  const parsed = parseListQuery({ ...sent, cursor: raw.get('newer') ?? sent['cursor'] })
  if (parsed instanceof Problem) return parsed
  const { before, ...query } = parsed
  return { ...query, categoryId, ...(before !== undefined && (raw.has('newer') ? { after: before } : { before })) }
}

function addedNotice(id: string | null, found: readonly Pet[]): Html | undefined {
  if (id === null || int64FromText(id) === undefined) return undefined
  const added = found.find((pet) => String(pet.id) === id)
  return html`<p class="notice good" role="status">${added === undefined ? 'Animal' : isolated(added.name)} added (${id}).
    <a href="/animals/new">Add another</a></p>`
}

async function list(visit: MemberVisit, query: PetList): Promise<Shown | { redirect: string }> {
  const { query: raw, config } = visit
  const { pets } = visit.store
  const { categoryId } = query
  const counting = categoryId === undefined ? pets.countByStatus() : pets.countInCategory(categoryId)
  const [found, counts] = await Promise.all([pets.list({ ...query, limit: query.limit + 1 }), counting])
  const isCounted = categoryId === undefined || isExact(counts)
  // No newer page follows: shows the first page instead, which is never shorter.
  if (query.after !== undefined && found.length <= query.limit) return { redirect: listAddress(query) }
  const notice = addedNotice(raw.get('added'), found)
  // The one animal too many is at the end that the query goes towards.
  const page = query.after === undefined ? found.slice(0, query.limit) : found.slice(-query.limit)
  if (page.length === 0) return { notice, content: nothing(query, config), counts, isCounted }
  const hasOlder = query.after !== undefined || found.length > page.length
  const isFirst = query.before === undefined && query.after === undefined
  const all = total(counts, query.status)
  // Counting what is newer would read it all, so the links carry the number; at both ends it is known.
  const first = isFirst ? 1 : hasOlder ? Number(raw.get('first')) : all - page.length + 1
  const last = first + page.length - 1
  const isKnown = Number.isSafeInteger(first) && first > 0 && last <= all && isCounted
  const address = (cursor: Record<string, string>, number: number) =>
    listAddress(query, { ...cursor, first: isKnown ? String(Math.max(number, 1)) : '' })
  const pages = {
    ...(!isFirst && {
      newest: listAddress(query),
      newer: address({ newer: encodeCursor(page[0]!.id) }, first - query.limit),
    }),
    ...(hasOlder && { older: address({ cursor: encodeCursor(page.at(-1)!.id) }, last + 1) }),
  }
  const range = isKnown && `${count(first)} to ${count(last)} of ${count(all)}`
  const content = html`${animalTable('Animals, newest first', page, visit)}${paging(pages, range)}`
  return { notice, content, counts, isCounted }
}

function nothing(query: PetList, { environment, given }: Config): Html {
  if (query.before !== undefined)
    return emptyState('No older animals', html`<a href="${listAddress(query)}">Go to the newest</a>`)
  const chosen = Object.keys(chosenQuery(query))
  if (chosen.length > 0) {
    const title = chosen.join() === 'status' ? `No animal is ${query.status}` : 'No animal matches'
    return emptyState(title, html`<a href="/animals">Show all animals</a>`)
  }
  // Without a name the command reaches only the default database, and no page names one.
  const seed =
    environment === 'staging' &&
    !given.has('database') &&
    html`, or fill the store with made-up ones: <code>petstore seed --count 100</code>`
  return emptyState('No animals yet', html`<a href="/animals/new">Add the first one</a>${seed}`)
}

/** Opens the animal whose id was typed. If there is none, searches names, also for words that are numbers. */
async function search(visit: MemberVisit, query: PetList, typed: string): Promise<Shown | { redirect: string }> {
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
  const found = await store.pets.search({ ...filters, words, after })
  const shown = { ...found, content: results(found, visit, typed, filters) }
  if (id === undefined) return shown
  const notice = html`<p class="notice bad" role="alert">There is no animal with the id ${id}.</p>`
  return { ...shown, ...(found.pets.length === 0 && { status: 404 }), notice }
}

/** Parses a place that `results` has put into an address; returns null for any other text. */
function placeFrom(text: string): Place | null {
  const [, digits = '', word = ''] = /^(\S+) (\S*)$/.exec(text) ?? []
  const id = int64FromText(digits)
  return id !== undefined && (wordsOf(word)[0] ?? '') === word ? { id, word } : null
}

async function refused(message: Html | string): Promise<Shown> {
  const content = html`<p class="notice bad" role="alert">${message} <a href="/animals">Show all animals</a></p>`
  return { status: 400, content }
}

function results(found: FoundPets, visit: MemberVisit, q: string, filters: PetList): Html {
  const { pets, next, isWhole, counts, isCounted, order } = found
  const isFirst = !visit.query.has('from')
  const all = html`<a href="${listAddress(filters)}">Show all${filters.status && ` ${filters.status}`} animals</a>`
  const behind =
    !isWhole &&
    html`<p class="notice warn" role="status">The search may not know all animals yet; it is being brought up to date.</p>`
  if (pets.length === 0 && next === undefined)
    return html`${behind}${emptyState(isFirst ? 'No animal matches' : 'No more animals match', all)}`
  const pages = {
    first: isFirst ? undefined : listAddress(filters, { q }),
    more: next && listAddress(filters, { q, from: `${next.id} ${next.word}` }),
  }
  return html`${behind}
    <p class="quiet-text">${count(total(counts, filters.status))} ${!isCounted && 'or more'} found for ${isolated(q)}, ${order === 'newest' ? 'newest first' : 'in the order of the matching word'}. ${all}</p>
    ${pets.length > 0 && animalTable('Animals that match', pets, visit)}
    ${next && pets.length < filters.limit && html`<p>There may be more: this page has looked at as many animals as one page does.</p>`}
    ${paging(pages)}`
}

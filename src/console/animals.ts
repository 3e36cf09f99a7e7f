// The list of animals: newest first, filtered by status, a page at a time, from the same store calls as the API. The search above it
// finds animals by id, or by the beginnings of words of the name.
import type { Config } from '../config.ts'
import { encodeCursor, filterQuery, type Filters, type ListQuery, parseListQuery } from '../contract/list-query.ts'
import { PET_STATUSES, type Pet, type PetStatus } from '../contract/pets.ts'
import { entryOf } from '../contract/entry-of.ts'
import { Problem } from '../contract/errors.ts'
import { int64FromText } from '../contract/int64.ts'
import { NAME_MAX_LENGTH } from '../contract/limits.ts'
import { type DelimiterName, DELIMITERS, renderCsv } from '../contract/pet-csv.ts'
import { wordsOf } from '../store/search-pets.ts'
import type { FoundPets, Place } from '../store/store.ts'
import { STATUS_WORDS } from './animal-form.ts'
import { ACCEPTED, animalTable, listAddress, withFilters } from './animal-table.ts'
import { emptyState, html, type Html, isolated } from '../http/html.ts'
import { hidden } from './forms.ts'
import { badRequestPage } from './problem-pages.ts'
import { count } from './times.ts'
import { type ConsoleRoute, forMembers, type MemberVisit, type Outcome } from './visit.ts'

export const animalsRoutes: readonly ConsoleRoute[] = [
  forMembers('GET', '/animals', animalsPage),
  forMembers('GET', '/animals.csv', csvFile),
]

/** What a page of animals shows below the tiles. */
interface Shown {
  status?: number
  notice?: Html | undefined
  content: Html
}

async function animalsPage(visit: MemberVisit): Promise<Outcome> {
  const parsed = readQuery(visit.query)
  const query = parsed instanceof Problem ? { limit: 1 } : parsed
  const typed = visit.query.get('q')?.trim() ?? ''
  const [counts, shown] = await Promise.all([
    visit.store.pets.countByStatus(),
    parsed instanceof Problem ? refused(parsed.message) : show(visit, parsed, typed),
  ])
  if ('redirect' in shown) return shown
  return {
    title: 'Animals',
    section: 'animals',
    ...(shown.status !== undefined && { status: shown.status }),
    body: html`<div class="page-head"><h1>Animals</h1><a class="button primary" href="/animals/new">Add an animal</a></div>
      ${shown.notice}${searchForm(typed, query)}${tiles(counts, query, typed)}${shown.content}`,
  }
}

function show(visit: MemberVisit, query: ListQuery, typed: string): Promise<Shown | { redirect: string }> {
  return typed === '' ? list(visit, query) : search(visit, query, typed)
}

/** How many animals of a file are read at a time. */
const BATCH = 1000

/** Returns all animals that the list shows, page after page, in its order. */
function csvFile({ store, query: raw }: MemberVisit): Outcome {
  const parsed = readQuery(raw)
  if (parsed instanceof Problem) return badRequestPage(400, parsed.message)
  const { before: _before, after: _after, ...filters } = parsed
  const { status } = filters
  const delimiter = entryOf(DELIMITERS, raw.get('delimiter') ?? 'comma')
  if (delimiter === undefined)
    return badRequestPage(400, `The delimiter must be one of ${Object.keys(DELIMITERS).join(', ')}.`)
  async function* batches(): AsyncGenerator<Pet[]> {
    const query: ListQuery = { ...filters, limit: BATCH }
    for (let page = await store.pets.list(query); page.length > 0; page = await store.pets.list(query)) {
      yield page
      query.before = page.at(-1)!.id
    }
  }
  const content = renderCsv(batches(), delimiter)
  return { file: `animals${status ? `-${status}` : ''}.csv`, type: 'text/csv; charset=utf-8', content }
}

function downloadLink(query: ListQuery): Html {
  const download = (delimiter: DelimiterName, words: string) =>
    html`<a class="button" href="${withFilters('/animals.csv', query, { delimiter })}">Download with ${words}</a>`
  return html`<details class="download"><summary>Download as CSV</summary>
    <p>All ${query.status ?? ''} animals, newest first. Names are written exactly as they are, and a spreadsheet may take one that starts with
    <code>=</code>, <code>+</code>, <code>-</code> or <code>@</code> for a formula: import the columns as text.</p>
    <p>If yours shows everything in one column, as Excel does where numbers have a decimal comma, take the file with semicolons.</p>
    <p>${download('comma', 'commas')} ${download('semicolon', 'semicolons')}</p>
  </details>`
}

/** Reads the status and the position in the list: `cursor` is where older animals start, `newer` where newer ones end. */
function readQuery(raw: URLSearchParams): ListQuery | Problem {
  const sent = Object.fromEntries(ACCEPTED.map(({ name }) => [name, raw.get(name) ?? undefined]))
  const parsed = parseListQuery({ ...sent, cursor: raw.get('newer') ?? sent['cursor'] })
  if (parsed instanceof Problem || !raw.has('newer')) return parsed
  const { before, ...query } = parsed
  return { ...query, after: before! }
}

function addedNotice(id: string | null, found: readonly Pet[]): Html | undefined {
  if (id === null || int64FromText(id) === undefined) return undefined
  const added = found.find((pet) => String(pet.id) === id)
  return html`<p class="notice good" role="status">${added === undefined ? 'Animal' : isolated(added.name)} added (${id}).
    <a href="/animals/new">Add another</a></p>`
}

function tiles(counts: Record<PetStatus, number>, chosen: Filters, typed: string): Html {
  const all = Object.values(counts).reduce((total, each) => total + each, 0)
  const tab = (status: PetStatus | undefined, words: string, total: number) => html`<li>
    <a class="tab ${status}" href="${listAddress({ ...chosen, status }, typed === '' ? {} : { q: typed })}" ${status === chosen.status && html`aria-current="true"`}>
      <span class="tab-words">${words}</span> <span class="tab-count">${count(total)}</span></a></li>`
  return html`<nav aria-label="By status"><ul class="tabs">
    ${tab(undefined, 'All', all)}${PET_STATUSES.map((status) => tab(status, STATUS_WORDS[status], counts[status]))}
  </ul></nav>`
}

async function list(visit: MemberVisit, query: ListQuery): Promise<Shown | { redirect: string }> {
  const { store, query: raw, config } = visit
  const found = await store.pets.list({ ...query, limit: query.limit + 1 })
  // No newer page follows: shows the first page instead, which is never shorter.
  if (query.after !== undefined && found.length <= query.limit) return { redirect: listAddress(query) }
  const notice = addedNotice(raw.get('added'), found)
  // The one animal too many is at the end that the query goes towards.
  const page = query.after === undefined ? found.slice(0, query.limit) : found.slice(-query.limit)
  if (page.length === 0) return { notice, content: nothing(query, config) }
  const hasOlder = query.after !== undefined || found.length > page.length
  const content = html`${animalTable('Animals, newest first', page, raw)}${paging(query, page, hasOlder)}${downloadLink(query)}`
  return { notice, content }
}

function paging(query: ListQuery, page: readonly Pet[], hasOlder: boolean): Html | undefined {
  const isFirst = query.before === undefined && query.after === undefined
  if (isFirst && !hasOlder) return undefined
  const newer = html`<a class="button" href="${listAddress(query)}">← Newest</a>
    <a class="button" rel="prev" href="${listAddress(query, { newer: encodeCursor(page[0]!.id) })}">← Newer</a>`
  const older = html`<a class="button" rel="next" href="${listAddress(query, { cursor: encodeCursor(page.at(-1)!.id) })}">Older →</a>`
  return html`<nav class="paging" aria-label="Pages">
    <span class="paging-back">${!isFirst && newer}</span>
    ${hasOlder ? older : html`<span class="quiet-text">These are the oldest.</span>`}
  </nav>`
}

function nothing(query: ListQuery, { environment, given }: Config): Html {
  if (query.before !== undefined)
    return emptyState('No older animals', html`<a href="${listAddress(query)}">Go to the newest</a>`)
  const filters = filterQuery(query)
  if (filters !== '') {
    const title = filters === `status=${query.status}` ? `No animal is ${query.status}` : 'No animal matches'
    return emptyState(title, html`<a href="/animals">Show all animals</a>`)
  }
  // Without a name the command reaches only the default database, and no page names one.
  const seed =
    environment === 'staging' &&
    !given.has('database') &&
    html`, or fill the store with made-up ones: <code>petstore seed --count 100</code>`
  return emptyState('No animals yet', html`<a href="/animals/new">Add the first one</a>${seed}`)
}

function searchForm(typed: string, filters: Filters): Html {
  return html`<form class="search" method="get" action="/animals" role="search">
    <label for="q">Find an animal</label>
    <input id="q" name="q" type="search" value="${typed}" placeholder="Name or id" maxlength="${NAME_MAX_LENGTH}" autocomplete="off" spellcheck="false" dir="auto">
    ${[...new URLSearchParams(filterQuery(filters))].map(([name, value]) => hidden(name, value))}
    <button class="button">Find</button>
  </form>`
}

/** Opens the animal whose id was typed. If there is none, searches names, also for words that are numbers. */
async function search(visit: MemberVisit, query: ListQuery, typed: string): Promise<Shown | { redirect: string }> {
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
  const content = results(found, raw, typed, filters)
  if (id === undefined) return { content }
  const notice = html`<p class="notice bad" role="alert">There is no animal with the id ${id}.</p>`
  return { ...(found.pets.length === 0 && { status: 404 }), notice, content }
}

/** Parses a place that `results` has put into an address; returns null for any other text. */
function placeFrom(text: string): Place | null {
  const [, digits = '', word = ''] = /^(\S+) (\S+)$/.exec(text) ?? []
  const id = int64FromText(digits)
  return id !== undefined && wordsOf(word)[0] === word ? { id, word } : null
}

async function refused(message: Html | string): Promise<Shown> {
  const content = html`<p class="notice bad" role="alert">${message} <a href="/animals">Show all animals</a></p>`
  return { status: 400, content }
}

function results({ pets, next, isWhole }: FoundPets, raw: URLSearchParams, q: string, filters: ListQuery): Html {
  const isFirst = !raw.has('from')
  const all = html`<a href="${listAddress(filters)}">Show all${filters.status && ` ${filters.status}`} animals</a>`
  const behind =
    !isWhole &&
    html`<p class="notice warn" role="status">The search may not know all animals yet; it is being brought up to date.</p>`
  if (pets.length === 0 && next === undefined)
    return html`${behind}${emptyState(isFirst ? 'No animal matches' : 'No more animals match', all)}`
  const back = !isFirst && html`<a class="button" href="${listAddress(filters, { q })}">← First</a>`
  const more =
    next &&
    html`<a class="button" rel="next" href="${listAddress(filters, { q, from: `${next.id} ${next.word}` })}">More →</a>`
  return html`${behind}
    <p class="quiet-text">Names that match ${isolated(q)}, in the order of the matching word. ${all}</p>
    ${pets.length > 0 && animalTable('Animals that match', pets, raw)}
    ${next && pets.length < filters.limit && html`<p>There may be more: this page has looked at as many animals as one page does.</p>`}
    ${(back || more) && html`<nav class="paging" aria-label="Pages"><span class="paging-back">${back}</span>${more}</nav>`}`
}

// The list of animals: newest first, filtered by status, a page at a time, from the same store calls as the API.
import { int64FromText } from '../contract/int64.ts'
import {
  encodeCursor,
  filterQuery,
  type Filters,
  LIST_PARAMETERS,
  type ListQuery,
  parseListQuery,
} from '../contract/list-query.ts'
import type { Environment } from '../contract/operations.ts'
import { FIELD_NAMES, type FieldName, FIELDS, PET_STATUSES, type Pet, type PetStatus } from '../contract/pets.ts'
import { Refused } from '../contract/errors.ts'
import { CSV_HEADER, csvLine } from '../contract/pet-csv.ts'
import { inWords, labelOf, STATUS_WORDS } from './animal-form.ts'
import { html, type Html, isolated } from './html.ts'
import { badRequestPage } from './problem-pages.ts'
import { count } from './times.ts'
import { type ConsoleRoute, forMembers, type MemberVisit, type Outcome } from './visit.ts'

export const animalsRoutes: readonly ConsoleRoute[] = [
  forMembers('GET', '/animals', animalsPage),
  forMembers('GET', '/animals.csv', csvFile),
]

/** The API's parameters; the size of a page is the console's own. */
const TAKEN = LIST_PARAMETERS.filter(({ name }) => name !== 'limit')

async function animalsPage(visit: MemberVisit): Promise<Outcome> {
  const { store, query: raw } = visit
  const sought = raw.get('id')?.trim() ?? ''
  const id = int64FromText(sought)
  if (id !== undefined && (await store.pets.get(id)) !== undefined) return { redirect: `/animals/${id}` }
  const parsed = readQuery(raw)
  const problem = parsed instanceof Refused ? parsed.message : undefined
  const query = parsed instanceof Refused ? { limit: 1 } : parsed
  const [counts, found] = await Promise.all([
    store.pets.countByStatus(),
    problem === undefined ? store.pets.list({ ...query, limit: query.limit + 1 }) : [],
  ])
  // No page is shorter than it need be: the one that ends with the newest animal is the first page.
  if (query.after !== undefined && found.length <= query.limit) return { redirect: listAddress(query) }
  const unknown = sought !== '' && problem === undefined
  return {
    title: 'Animals',
    section: 'animals',
    ...(problem !== undefined && { status: 400 }),
    ...(unknown && { status: 404 }),
    body: html`<div class="page-head"><h1>Animals</h1><a class="button primary" href="/animals/new">Add an animal</a></div>
      ${addedNotice(raw.get('added'), found)}
      ${unknown && html`<p class="notice bad" role="alert">There is no animal with the id ${isolated(sought)}.</p>`}
      ${filter(counts, query)}${jump(sought)}
      ${
        problem === undefined
          ? list(query, found, raw, visit.config.environment)
          : html`<p class="notice bad" role="alert">${problem} <a href="/animals">Show all animals</a></p>`
      }`,
  }
}

/** How many animals of a file are read at a time. */
const BATCH = 1000

/** Returns all animals that the list shows, page after page, in its order. */
function csvFile({ store, query: raw }: MemberVisit): Outcome {
  const parsed = readQuery(raw)
  if (parsed instanceof Refused) return badRequestPage(400, parsed.message)
  const { before: _before, after: _after, ...filters } = parsed
  const { status } = filters
  async function* lines(): AsyncGenerator<string> {
    // Spreadsheets recognise UTF-8 by its byte order mark.
    yield `\uFEFF${CSV_HEADER}\n`
    const query: ListQuery = { ...filters, limit: BATCH }
    for (let page = await store.pets.list(query); page.length > 0; page = await store.pets.list(query)) {
      yield page.map((pet) => `${csvLine(pet)}\n`).join('')
      query.before = page.at(-1)!.id
    }
  }
  return { file: `animals${status ? `-${status}` : ''}.csv`, type: 'text/csv; charset=utf-8', content: lines() }
}

function downloadLink(query: ListQuery): Html {
  return html`<details class="download"><summary>Download as CSV</summary>
    <p>All ${query.status ?? ''} animals, newest first. Names are written exactly as they are, and a spreadsheet may take one that starts with
    <code>=</code>, <code>+</code>, <code>-</code> or <code>@</code> for a formula: import the columns as text.</p>
    <p><a class="button" href="${addressOf('/animals.csv', Object.fromEntries(new URLSearchParams(filterQuery(query))))}" download>Download</a></p>
  </details>`
}

/** Reads the status and the place in the list: `cursor` is where older animals start, `newer` where newer ones end. */
function readQuery(raw: URLSearchParams): ListQuery | Refused {
  const sent = Object.fromEntries(TAKEN.map(({ name }) => [name, raw.get(name) ?? undefined]))
  const parsed = parseListQuery({ ...sent, cursor: raw.get('newer') ?? sent['cursor'] })
  if (parsed instanceof Refused || !raw.has('newer')) return parsed
  const { before, ...query } = parsed
  return { ...query, after: before! }
}

function listAddress(filters: Filters, place: Record<string, string> = {}): string {
  return addressOf('/animals', { ...Object.fromEntries(new URLSearchParams(filterQuery(filters))), ...place })
}

/** Returns an address that remembers the place in the list that the visitor came from. */
export function keepingPlace(path: string, raw: URLSearchParams, more: Record<string, string> = {}): string {
  const place = [...TAKEN.map(({ name }) => name), 'newer'].flatMap((name) =>
    raw.has(name) ? [[name, raw.get(name)!]] : [],
  )
  return addressOf(path, { ...(Object.fromEntries(place) as Record<string, string>), ...more })
}

function addressOf(path: string, parameters: Record<string, string>): string {
  const query = new URLSearchParams(parameters).toString()
  return query === '' ? path : `${path}?${query}`
}

function addedNotice(id: string | null, found: readonly Pet[]): Html | undefined {
  if (id === null) return undefined
  const added = found.find((pet) => String(pet.id) === id)
  return html`<p class="notice good" role="status">${added === undefined ? 'Animal' : isolated(added.name)} added (${id}).
    <a href="/animals/new">Add another</a></p>`
}

function jump(sought: string): Html {
  return html`<form class="jump" method="get" action="/animals">
    <label for="id">Go to id</label> <input id="id" name="id" value="${sought}" inputmode="numeric" autocomplete="off"> <button class="button">Go</button>
  </form>`
}

function filter(counts: Record<PetStatus, number>, chosen: Filters): Html {
  const all = PET_STATUSES.reduce((total, status) => total + counts[status], 0)
  const tab = (status: PetStatus | undefined, words: string, total: number) => html`<li>
    <a class="tab ${status}" href="${listAddress({ ...chosen, status })}" ${status === chosen.status && html`aria-current="true"`}>
      <span class="tab-words">${words}</span> <span class="tab-count">${count(total)}</span></a></li>`
  return html`<nav aria-label="By status"><ul class="tabs">
    ${tab(undefined, 'All', all)}${PET_STATUSES.map((status) => tab(status, STATUS_WORDS[status], counts[status]))}
  </ul></nav>`
}

function list(query: ListQuery, found: readonly Pet[], raw: URLSearchParams, environment: Environment): Html {
  // The one animal too many is at the end that the query goes towards.
  const page = query.after === undefined ? found.slice(0, query.limit) : found.slice(-query.limit)
  if (page.length === 0) return nothing(query, environment)
  return html`<table class="table animals">
      <caption class="visually-hidden">Animals, newest first</caption>
      <thead><tr>
        ${LISTED.map((name) => html`<th scope="col" class="${alignment(name)}">${labelOf(name)}</th>`)}
        <th scope="col" class="number">Id</th>
      </tr></thead>
      <tbody>${page.map(
        (pet) => html`<tr ${String(pet.id) === raw.get('added') && html`class="fresh"`}>
          ${LISTED.map((name) => cell(pet, name, raw))}<td class="number">${pet.id}</td></tr>`,
      )}</tbody>
    </table>
    ${paging(query, page, query.after !== undefined || found.length > page.length)}
    ${downloadLink(query)}`
}

/** Name and status first, then the rest. */
const LISTED: readonly FieldName[] = [...new Set<FieldName>(['name', 'status', ...FIELD_NAMES])]

function cell(pet: Pet, name: FieldName, raw: URLSearchParams): Html {
  const words = inWords(pet, name)
  if (name === 'name')
    return html`<th scope="row"><a href="${keepingPlace(`/animals/${pet.id}`, raw)}">${isolated(words)}</a></th>`
  if (name === 'status') return html`<td><span class="mark ${pet.status}">${words}</span></td>`
  return html`<td class="${alignment(name)}">${words}</td>`
}

function alignment(name: FieldName): string {
  return FIELDS[name].schema.type === 'integer' ? 'number' : ''
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

function nothing(query: ListQuery, environment: Environment): Html {
  if (query.before !== undefined)
    return empty('No older animals', html`<a href="${listAddress(query)}">Go to the newest</a>`)
  const filters = filterQuery(query)
  if (filters !== '') {
    const title = filters === `status=${query.status}` ? `No animal is ${query.status}` : 'No animal matches'
    return empty(title, html`<a href="/animals">Show all animals</a>`)
  }
  const seed =
    environment === 'staging' && html`, or fill the store with made-up ones: <code>petstore seed --count 100</code>`
  return empty('No animals yet', html`<a href="/animals/new">Add the first one</a>${seed}`)
}

function empty(title: string, next: Html): Html {
  return html`<div class="empty"><p><strong>${title}</strong></p><p>${next}</p></div>`
}

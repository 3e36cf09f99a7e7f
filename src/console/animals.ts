// The list of animals: newest first, filtered by status, a page at a time, from the same store calls as the API.
import {
  filterQuery,
  type Filters,
  LIST_PARAMETERS,
  type ListQuery,
  nextPageQuery,
  parseListQuery,
} from '../contract/list-query.ts'
import type { Environment } from '../contract/operations.ts'
import { FIELD_NAMES, type FieldName, FIELDS, PET_STATUSES, type Pet, type PetStatus } from '../contract/pets.ts'
import { Refused } from '../contract/errors.ts'
import { inWords, labelOf, STATUS_WORDS } from './animal-form.ts'
import { html, type Html } from './html.ts'
import { count } from './times.ts'
import { type ConsoleRoute, forMembers, type MemberVisit, type Outcome } from './visit.ts'

export const animalsRoutes: readonly ConsoleRoute[] = [forMembers('GET', '/animals', animalsPage)]

/** The API's parameters; the size of a page is the console's own. */
const TAKEN = LIST_PARAMETERS.filter(({ name }) => name !== 'limit')

async function animalsPage(visit: MemberVisit): Promise<Outcome> {
  const { store, query: raw } = visit
  const sought = raw.get('id')?.trim()
  // A browser would resolve dots as parts of the path, and open another page.
  if (sought && !/^\.\.?$/.test(sought)) return { redirect: `/animals/${encodeURIComponent(sought)}` }
  const parsed = parseListQuery(Object.fromEntries(TAKEN.map(({ name }) => [name, raw.get(name) ?? undefined])))
  const problem = parsed instanceof Refused ? parsed.message : undefined
  const query = parsed instanceof Refused ? { limit: 1 } : parsed
  const [counts, found] = await Promise.all([
    store.pets.countByStatus(),
    problem === undefined ? store.pets.list({ ...query, limit: query.limit + 1 }) : [],
  ])
  return {
    title: 'Animals',
    section: 'animals',
    ...(problem !== undefined && { status: 400 }),
    body: html`<div class="page-head"><h1>Animals</h1><a class="button primary" href="/animals/new">Add an animal</a></div>
      ${addedNotice(raw.get('added'), found)}
      ${filter(counts, query)}${jump}
      ${
        problem === undefined
          ? list(query, found, raw.get('added'), visit.config.environment)
          : html`<p class="notice bad" role="alert">${problem} <a href="/animals">Show all animals</a></p>`
      }`,
  }
}

function addedNotice(id: string | null, found: readonly Pet[]): Html | undefined {
  if (id === null) return undefined
  const added = found.find((pet) => String(pet.id) === id)
  return html`<p class="notice good" role="status">${added === undefined ? 'Animal' : html`<bdi>${added.name}</bdi>`} added (${id}).
    <a href="/animals/new">Add another</a></p>`
}

const jump = html`<form class="jump" method="get" action="/animals">
  <label for="id">Go to id</label> <input id="id" name="id" inputmode="numeric" autocomplete="off"> <button class="button">Go</button>
</form>`

function filter(counts: Record<PetStatus, number>, chosen: Filters): Html {
  const all = PET_STATUSES.reduce((total, status) => total + counts[status], 0)
  const tab = (status: PetStatus | undefined, words: string, total: number) => html`<li>
    <a class="tab ${status}" href="${listAddress({ ...chosen, status })}" ${status === chosen.status && html`aria-current="true"`}>
      <span class="tab-words">${words}</span> <span class="tab-count">${count(total)}</span></a></li>`
  return html`<nav aria-label="By status"><ul class="tabs">
    ${tab(undefined, 'All', all)}${PET_STATUSES.map((status) => tab(status, STATUS_WORDS[status], counts[status]))}
  </ul></nav>`
}

function list(query: ListQuery, found: readonly Pet[], added: string | null, environment: Environment): Html {
  const page = found.slice(0, query.limit)
  if (page.length === 0) return nothing(query, environment)
  return html`<table class="table">
      <caption class="visually-hidden">Animals, newest first</caption>
      <thead><tr>
        ${LISTED.map((name) => html`<th scope="col" class="${alignment(name)}">${labelOf(name)}</th>`)}
        <th scope="col" class="number">Id</th>
      </tr></thead>
      <tbody>${page.map(
        (pet) => html`<tr ${String(pet.id) === added && html`class="fresh"`}>
          ${LISTED.map((name) => cell(pet, name))}<td class="number">${pet.id}</td></tr>`,
      )}</tbody>
    </table>
    ${paging(query, found.length > page.length ? page.at(-1)!.id : undefined)}`
}

/** Name and status first, then the rest. */
const LISTED: readonly FieldName[] = [...new Set<FieldName>(['name', 'status', ...FIELD_NAMES])]

function cell(pet: Pet, name: FieldName): Html {
  const words = inWords(pet, name)
  if (name === 'name') return html`<th scope="row"><a href="/animals/${pet.id}"><bdi>${words}</bdi></a></th>`
  if (name === 'status') return html`<td><span class="mark ${pet.status}">${words}</span></td>`
  return html`<td class="${alignment(name)}">${words}</td>`
}

function alignment(name: FieldName): string {
  return FIELDS[name].schema.type === 'integer' ? 'number' : ''
}

function paging(query: ListQuery, last: bigint | undefined): Html | undefined {
  if (last === undefined && query.before === undefined) return undefined
  return html`<nav class="paging" aria-label="Pages">
    ${query.before === undefined ? html`<span></span>` : html`<a class="button" href="${listAddress(query)}">← Newest</a>`}
    ${
      last === undefined
        ? html`<span class="quiet-text">These are the oldest.</span>`
        : html`<a class="button" rel="next" href="/animals?${nextPageQuery(query, last)}">Older →</a>`
    }
  </nav>`
}

/** The address of the newest animals of these filters. */
function listAddress(filters: Filters): string {
  const query = filterQuery(filters)
  return query === '' ? '/animals' : `/animals?${query}`
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

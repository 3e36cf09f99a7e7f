// The search above the list of animals: by id, or by the beginnings of words of the name.
import { int64FromText } from '../contract/int64.ts'
import { filterQuery, type Filters, type ListQuery } from '../contract/list-query.ts'
import { NAME_MAX_LENGTH } from '../contract/limits.ts'
import type { FoundPets, Place } from '../store/store.ts'
import { wordsOf } from '../store/search-pets.ts'
import { animalTable, listAddress, type Shown, withFilters } from './animal-table.ts'
import { hidden } from './forms.ts'
import { emptyState, html, type Html, isolated } from '../http/html.ts'
import type { MemberVisit } from './visit.ts'

export function searchForm(typed: string, filters: Filters): Html {
  return html`<form class="search" method="get" action="/animals" role="search">
    <label for="q">Find an animal</label>
    <input id="q" name="q" type="search" value="${typed}" placeholder="Name or id" maxlength="${NAME_MAX_LENGTH}" autocomplete="off" spellcheck="false" dir="auto">
    ${[...new URLSearchParams(filterQuery(filters))].map(([name, value]) => hidden(name, value))}
    <button class="button">Find</button>
  </form>`
}

/** Opens the animal whose id was typed. If there is none, searches names, also for words that are numbers. */
export async function search(
  visit: MemberVisit,
  query: ListQuery,
  typed: string,
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

export async function refused(message: Html | string): Promise<Shown> {
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

// The toolbar above the animals: the search, the category, the statuses with their counts, the download, and the way to add one.
import type { CategoryNames } from '../contract/category-name.ts'
import { NAME_MAX_LENGTH } from '../contract/limits.ts'
import type { DelimiterName } from '../contract/pet-csv.ts'
import { PET_STATUSES, type PetStatus } from '../contract/pets.ts'
import { COUNTED_MOST } from '../store/category-store.ts'
import type { FoundPets } from '../store/store.ts'
import { html, type Html, isolated, withVisibleControls } from '../http/html.ts'
import { CATEGORY, type Chosen, chosenQuery, listAddress, withFilters } from './animal-addresses.ts'
import { STATUS_WORDS } from './animal-form.ts'
import { hidden, optionList } from './forms.ts'
import { count } from './times.ts'
import type { MemberVisit } from './visit.ts'

/** Without `counts`, the statuses are shown without numbers. If `isCounted` is false, there may be more. */
export type StatusCounts = Partial<Pick<FoundPets, 'counts' | 'isCounted'>>

/** `typed` is the text of the search; empty for the list. */
export function toolbar({ categories }: MemberVisit, filters: Chosen, typed: string, counts: StatusCounts): Html {
  return html`<div class="page-head"><h1>Animals</h1>
      <div class="head-actions"><a class="button" href="/animals/changes">Changes</a> ${downloadMenu(filters, typed, categories)}
        <a class="button primary" href="/animals/new">Add<span class="wide-words"> an animal</span></a></div></div>
    <div class="toolbar">${searchForm(typed, filters)}${categoryMenu(typed, filters, categories)}${statusSegments(filters, typed, counts)}</div>`
}

function searchForm(typed: string, filters: Chosen): Html {
  return html`<form class="search" method="get" action="/animals" role="search">
    <input id="q" name="q" type="search" value="${typed}" placeholder="Name or id" aria-label="Find an animal" aria-keyshortcuts="/" maxlength="${NAME_MAX_LENGTH}" autocomplete="off" spellcheck="false" dir="auto">
    ${Object.entries(chosenQuery(filters)).map(([name, value]) => hidden(name, value))}
    <button class="button">Find</button>
  </form>`
}

/** A category without a name is among the options only if it was chosen, by the link on an animal's page. */
function categoryMenu(typed: string, { categoryId, ...filters }: Chosen, categories: CategoryNames): Html {
  const chosen = categoryId === undefined ? [] : [categoryId]
  const options = [...new Set([...categories.names.keys(), ...chosen])].map(
    (number) => [String(number), withVisibleControls(categories.words(number))] as const,
  )
  return html`<details class="menu"><summary class="button"><span>${categoryId === undefined ? 'Category' : isolated(categories.words(categoryId))}</span></summary>
    <div class="menu-box">
      <form class="filter" method="get" action="/animals">
        ${Object.entries({ ...chosenQuery(filters), q: typed }).map(([name, value]) => hidden(name, value))}
        <select name="${CATEGORY}" aria-label="Category">${optionList([['', 'All categories'], ...options], String(categoryId ?? ''))}</select>
        <button class="button">Show</button>
      </form>
      <a href="/categories">Add and rename categories</a>
    </div>
  </details>`
}

function statusSegments(chosen: Chosen, typed: string, { counts, isCounted }: StatusCounts): Html {
  const segment = (status: PetStatus | undefined, words: string) => html`<li>
    <a href="${listAddress({ ...chosen, status }, { q: typed })}" ${status === chosen.status && html`aria-current="true"`}>
      <span>${words}</span> ${counts && html`<span class="segment-count">${count(total(counts, status))}${isCounted === false && '+'}</span>`}</a></li>`
  return html`<nav aria-label="By status"><ul class="switch segments">
    ${segment(undefined, 'All')}${PET_STATUSES.map((status) => segment(status, STATUS_WORDS[status]))}
  </ul></nav>`
}

/** Returns how many animals the list of a status has; without a status, of all. */
export function total(counts: Record<PetStatus, number>, status?: PetStatus): number {
  return status === undefined ? Object.values(counts).reduce((sum, each) => sum + each, 0) : counts[status]
}

/** Returns whether the animals of a category were counted to the last one. */
export function isExact(counts: Record<PetStatus, number>): boolean {
  return Object.values(counts).every((each) => each < COUNTED_MOST)
}

function downloadMenu(filters: Chosen, typed: string, categories: CategoryNames): Html {
  const { categoryId } = filters
  const download = (delimiter: DelimiterName, words: string) =>
    html`<a class="button" href="${withFilters('/animals.csv', filters, { q: typed, delimiter })}">With ${words}</a>`
  return html`<details class="menu"><summary class="button">Download</summary>
    <div class="menu-box download">
      <p>All ${filters.status ?? ''} animals ${categoryId !== undefined && html`of ${isolated(categories.words(categoryId))}`} ${typed !== '' && 'that match'} as CSV, in the order of the list. If your spreadsheet shows one column, as Excel does where numbers have a
      decimal comma, take semicolons.</p>
      <p>${download('comma', 'commas')} ${download('semicolon', 'semicolons')}</p>
      <p class="quiet-text">Names are written exactly as they are. Import the columns as text: a spreadsheet may take a name that starts with
      <code>=</code>, <code>+</code>, <code>-</code> or <code>@</code> for a formula.</p>
    </div>
  </details>`
}

// The toolbar above the animals: the search, the category, the statuses with their counts, the download, and the way to add one.
import { NAME_MAX_LENGTH } from '../../contract/limits.ts'
import type { DelimiterName } from '../../contract/pet-csv.ts'
import { PET_STATUSES } from '../../contract/pets.ts'
import { COUNTED_MOST, type PetCounts } from '../../store/pet-counts.ts'
import { statusesOf } from '../../store/pet-list.ts'
import { html, type Html, isolated } from '../../http/html/html.ts'
import { type Chosen, IN_SHOP, chosenQuery, listAddress, withFilters, withQuery } from './animal-addresses.ts'
import { STATUS_WORDS } from '../../contract/pet-words.ts'
import { suggestedCategories } from './animal-form.ts'
import { hidden } from '../every-page/forms.ts'
import { count } from '../every-page/times.ts'
import type { MemberVisit } from '../every-page/visit.ts'

/** A status that was not counted is shown without a number. */
export type StatusCounts = Partial<PetCounts>

/** `typed` is the text of the search; empty for the list. */
export async function toolbar(
  visit: MemberVisit,
  filters: Chosen,
  typed: string,
  counts: StatusCounts = {},
): Promise<Html> {
  return html`<div class="page-head"><h1>Animals</h1>
      <div class="head-actions"><a class="button" href="/animals/changes">Changes</a> ${downloadMenu(filters, typed)} <span class="wide-words"><a class="button" href="/animals/import">Bring in a file</a></span>
        <a class="button primary" aria-keyshortcuts="n" href="${withQuery('/animals/new', { categoryId: String(filters.categoryId ?? '') })}">Add<span class="wide-words"> an animal</span></a></div></div>
    <div class="toolbar">${searchForm(typed, filters)}${statusSegments(filters, typed, counts)}${await categoryLinks(visit, typed, filters)}</div>`
}

function searchForm(typed: string, filters: Chosen): Html {
  return html`<form class="search" method="get" action="/animals" role="search">
    <input id="q" name="q" type="search" value="${typed}" placeholder="Name or id" aria-label="Find an animal" aria-keyshortcuts="/" maxlength="${NAME_MAX_LENGTH}" autocomplete="off" spellcheck="false" dir="auto">
    ${Object.entries(chosenQuery(filters)).map(([name, value]) => hidden(name, value))}
    <button class="button">Find</button>
  </form>`
}

/** How many categories are one press away; their own page leads to all of them. */
const LINKED = 12

/** Those in use are linked first. A category without a name is linked only if it was chosen, by the link on an animal's page. */
async function categoryLinks(visit: MemberVisit, typed: string, chosen: Chosen): Promise<Html> {
  const { categories } = visit
  const named = categories.names.size > LINKED ? await suggestedCategories(visit) : [...categories.names.keys()]
  const own = chosen.categoryId === undefined ? [] : [chosen.categoryId]
  const link = (categoryId: bigint | undefined, words: Html | string) => html`<li>
    <a href="${listAddress({ ...chosen, categoryId }, { q: typed })}" ${categoryId === chosen.categoryId && html`aria-current="true"`}>${words}</a></li>`
  return html`<nav class="categories" aria-label="By category"><ul class="switch">${link(undefined, 'All categories')}
    ${Array.from(new Set([...named.slice(0, LINKED), ...own]), (number) => link(number, isolated(categories.words(number))))}
    <li><a href="/categories">${named.length > LINKED ? 'More…' : 'Names…'}</a></li></ul></nav>`
}

function statusSegments(chosen: Chosen, typed: string, counts: StatusCounts): Html {
  const segment = (words: Html | string, shown: Pick<Chosen, 'status' | 'inShop'>) => {
    const isShown = shown.status === chosen.status && Boolean(shown.inShop) === Boolean(chosen.inShop)
    const number = countOf(counts, shown)
    return html`<li><a href="${listAddress({ ...chosen, ...shown }, { q: typed })}" ${isShown && html`aria-current="true"`}>
      <span>${words}</span> ${number !== undefined && html`<span class="segment-count">${countWords(number)}</span>`}</a></li>`
  }
  return html`<nav aria-label="By status" id="by-status"><ul class="switch segments">
    ${segment(html`In<span class="wide-words"> the</span> shop`, { status: undefined, inShop: true })}
    ${PET_STATUSES.map((status) => segment(STATUS_WORDS[status], { status, inShop: false }))}
    ${segment('All', { status: undefined, inShop: false })}
  </ul></nav>`
}

/** Returns how many animals the counts have of what is shown; undefined if not all of that was counted. */
export function countOf(counts: StatusCounts, shown: Pick<Chosen, 'status' | 'inShop'>): number | undefined {
  const numbers = statusesOf(shown).map((status) => counts[status])
  return numbers.reduce((sum, number) => (sum === undefined || number === undefined ? undefined : sum + number), 0)
}

/** Counting stops at `COUNTED_MOST`. */
export function countWords(number: number): string {
  return number > COUNTED_MOST ? `${count(COUNTED_MOST)}+` : count(number)
}

function downloadMenu(filters: Chosen, typed: string): Html {
  const download = (delimiter: DelimiterName, words: string) =>
    html`<a class="button" href="${withFilters('/animals.csv', filters, { ...(filters.inShop && { status: IN_SHOP }), q: typed, delimiter })}">With ${words}</a>`
  return html`<details class="menu"><summary class="button">Download</summary>
    <div class="menu-box download">
      <p>The animals of this list, on all its pages, as CSV. If your spreadsheet shows one column, as Excel does where numbers have a
      decimal comma, take semicolons.</p>
      <p>${download('comma', 'commas')} ${download('semicolon', 'semicolons')}</p>
      <p class="quiet-text">Names are written exactly as they are. Import the columns as text: a spreadsheet may take a name that starts with
      <code>=</code>, <code>+</code>, <code>-</code> or <code>@</code> for a formula.</p>
    </div>
  </details>`
}

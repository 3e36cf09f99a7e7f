// The toolbar above the animals: the search, the statuses with their counts, the category, the download, and the ways to add some.
import { NAME_MAX_LENGTH } from '../../contract/limits.ts'
import type { DelimiterName } from '../../contract/pet-csv.ts'
import { PET_STATUSES } from '../../contract/pets.ts'
import { COUNTED_MOST } from '../../store/pet-counts.ts'
import { html, type Html, isolated } from '../../http/html/html.ts'
import {
  CHOOSER,
  type Chosen,
  IN_SHOP,
  chosenQuery,
  listAddress,
  type Sort,
  SORTS,
  withFilters,
  withQuery,
} from './animal-addresses.ts'
import { type Asked, countOf, type Listed, type Sorts, sortsOf, type StatusCounts } from './animal-list.ts'
import { STATUS_WORDS } from '../../contract/pet-words.ts'
import { hidden } from '../every-page/forms.ts'
import { count } from '../every-page/times.ts'
import type { MemberVisit } from '../every-page/visit.ts'

/** Without `listed` nothing was sought. */
export function toolbar({ categories }: MemberVisit, asked: Asked, listed?: Listed): Html {
  const { categoryId } = asked
  const category = categoryId === undefined ? 'All categories' : isolated(categories.words(categoryId))
  return html`<div class="page-head"><h1>Animals</h1>
      <div class="head-actions">${moreMenu(asked, listed ? sortsOf(asked, listed) : {})} <a class="button ghost wide-words" href="/animals/import">Import a spreadsheet</a>
        <a class="button primary" aria-keyshortcuts="n" href="${withQuery('/animals/new', { categoryId: String(categoryId ?? '') })}">Add an animal</a></div></div>
    <div class="toolbar">${searchForm(asked)}${statusSegments(asked, listed?.counts ?? {})}
      <a class="button ghost choose" data-choose href="${withFilters(CHOOSER, asked)}"><span class="visually-hidden">Category: </span>${category}</a></div>`
}

function searchForm(asked: Asked): Html {
  return html`<form class="search" method="get" action="/animals" role="search">
    <input id="q" name="q" type="search" value="${asked.q}" placeholder="Name or id" aria-label="Find an animal" aria-keyshortcuts="/" maxlength="${NAME_MAX_LENGTH}" autocomplete="off" spellcheck="false" dir="auto">
    ${Object.entries(chosenQuery(asked)).map(([name, value]) => hidden(name, value))}
    <button class="button">Find</button>
  </form>`
}

function statusSegments(asked: Asked, counts: StatusCounts): Html {
  const segment = (words: Html | string, shown: Pick<Chosen, 'status' | 'inShop'>) => {
    const isShown = shown.status === asked.status && shown.inShop === asked.inShop
    const number = countOf(counts, shown)
    return html`<li><a href="${listAddress({ ...asked, ...shown })}" ${isShown && html`aria-current="true"`}>
      <span>${words}</span> ${number !== undefined && html`<span class="segment-count">${countWords(number)}</span>`}</a></li>`
  }
  return html`<nav aria-label="By status" id="by-status"><ul class="switch segments">
    ${segment(html`In<span class="wide-words"> the</span> shop`, { status: undefined, inShop: true })}
    ${PET_STATUSES.map((status) => segment(STATUS_WORDS[status], { status, inShop: false }))}
    ${segment('All', { status: undefined, inShop: false })}
  </ul></nav>`
}

/** Counting stops at `most`. */
export function countWords(number: number, most = COUNTED_MOST): string {
  return number > most ? `${count(most)}+` : count(number)
}

/** The menu of the download. On a phone it also has what has no place there. */
function moreMenu(asked: Asked, sorts: Sorts): Html {
  const download = (delimiter: DelimiterName, words: string) =>
    html`<a class="button" href="${withFilters('/animals.csv', asked, { ...(asked.inShop && { status: IN_SHOP }), delimiter })}">With ${words}</a>`
  const order = ([sort, address]: [string, string]) =>
    html`<a class="button" href="${address}">${SORTS[sort as Sort]}</a> `
  return html`<details class="menu"><summary class="button ghost"><span class="wide-words">Download</span><span class="phone-words">…<span class="visually-hidden"> More</span></span></summary>
    <div class="menu-box download">
      <p class="phone-words"><a class="button" href="/animals/import">Import a spreadsheet</a> ${Object.entries(sorts).map(order)}</p>
      <p>Download the animals of this list, on all its pages, as CSV. If your spreadsheet shows one column, as Excel does where numbers have
      a decimal comma, take semicolons.</p>
      <p>${download('comma', 'commas')} ${download('semicolon', 'semicolons')}</p>
      <p class="quiet-text">Names are written exactly as they are. Import the columns as text: a spreadsheet may take a name that starts with
      <code>=</code>, <code>+</code>, <code>-</code> or <code>@</code> for a formula.</p>
    </div>
  </details>`
}

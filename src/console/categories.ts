// The pages of categories: list them with how many animals each has, add one, rename one. The numbers never change.
import { type Category, categoryNameProblem } from '../contract/category-name.ts'
import { FieldProblem } from '../contract/errors.ts'
import { int64FromText } from '../contract/int64.ts'
import { CATEGORIES_MOST } from '../contract/limits.ts'
import type { AuditEvent } from '../store/account-store.ts'
import type { Store } from '../store/store.ts'
import { emptyState, html, type Html, isolated } from '../http/html.ts'
import { listAddress } from './animal-addresses.ts'
import { isExact, total } from './animal-toolbar.ts'
import { field, form, hidden, type Problems, problemSummary } from './forms.ts'
import { paging } from './paging.ts'
import { notFoundPage } from './problem-pages.ts'
import { count } from './times.ts'
import { type ConsoleRoute, forMembers, type HtmlPage, type MemberVisit, type Outcome } from './visit.ts'

export const categoryRoutes: readonly ConsoleRoute[] = [
  forMembers('GET', '/categories', listPage),
  forMembers('GET', '/categories/new', (visit) => formPage(visit)),
  forMembers('POST', '/categories/new', (visit) => save(visit), { keepsTyped: true }),
  forMembers('GET', '/categories/{number}', withCategory(formPage)),
  forMembers('POST', '/categories/{number}', withCategory(save), { keepsTyped: true }),
]

const SHOWN = 20

async function listPage({ store, query, categories }: MemberVisit): Promise<HtmlPage> {
  const [after, saved] = ['after', 'saved'].map((name) => int64FromText(query.get(name) ?? ''))
  const all = [...categories.names]
  const start = all.findIndex(([number]) => number === after) + 1
  const shown = all.slice(start, start + SHOWN)
  const rows = await Promise.all(shown.map(async ([number, name]) => row(number, name, await countIn(store, number))))
  const pages = {
    first: start > 0 ? '/categories' : undefined,
    more: start + SHOWN < all.length ? `/categories?after=${shown.at(-1)![0]}` : undefined,
  }
  return {
    title: 'Categories',
    section: 'animals',
    body: html`<p class="back"><a href="/animals">← Animals</a></p>
      <div class="page-head"><h1>Categories</h1><a class="button primary" href="/categories/new">Add a category</a></div>
      ${saved !== undefined && html`<p class="notice good" role="status">Saved: ${isolated(categories.words(saved))}.</p>`}
      ${
        rows.length === 0
          ? emptyState('No category has a name yet', 'Animals show the number of their category until it has one.')
          : html`<table class="table animals">
        <caption class="visually-hidden">Categories, by name</caption>
        <thead><tr><th scope="col">Name</th><th scope="col" class="number">Number</th><th scope="col" class="number">Animals</th>
          <th scope="col"><span class="visually-hidden">Actions</span></th></tr></thead>
        <tbody>${rows}</tbody></table>${paging(pages)}`
      }`,
  }
}

async function countIn({ pets }: Store, number: bigint): Promise<string> {
  const counts = await pets.countInCategory(number)
  return `${count(total(counts))}${isExact(counts) ? '' : ' or more'}`
}

function row(number: bigint, name: string, animals: string): Html {
  return html`<tr><th scope="row"><a href="${listAddress({ categoryId: number })}">${isolated(name)}</a></th>
    <td class="number" data-label="Number">${number}</td>
    <td class="number" data-label="Animals">${animals}</td>
    <td class="step-cell"><a class="button quiet" href="/categories/${number}">Rename<span class="visually-hidden"> ${name}</span></a></td></tr>`
}

/** Adds a category, or renames the given one. */
function formPage(visit: MemberVisit, category?: Category, problems: Problems = []): HtmlPage {
  const typed = (name: string, start = '') => visit.form.get(name) ?? start
  const title = category === undefined ? 'Add a category' : 'Rename a category'
  return {
    title,
    section: 'animals',
    ...(problems.length > 0 && { status: 400 }),
    body: html`<div class="narrow"><h1>${category === undefined ? title : html`Rename ${isolated(category.name)} (${category.number})`}</h1>
      ${problemSummary(problems)}
      ${form(visit, {
        action: category === undefined ? '/categories/new' : `/categories/${category.number}`,
        submit: category === undefined ? 'Add category' : 'Rename',
        cancel: '/categories',
        fields: html`${category && hidden('shown', visit.isRestored ? typed('shown') : category.name)}
          ${field({ name: 'name', label: 'Name', hint: 'Such as Cats.', value: typed('name', category?.name), problems, focus: true })}
          ${
            category === undefined &&
            field({
              name: 'number',
              label: 'Number',
              hint: 'The number that animals of this category have. Leave it empty to take a free one.',
              value: typed('number'),
              problems,
              numeric: true,
            })
          }`,
      })}</div>`,
  }
}

/** Adds a category, or renames the given one. Takes back no rename that happened since the form was opened. */
async function save(visit: MemberVisit, category?: Category): Promise<Outcome> {
  const { form: sent, now, who } = visit
  const { categories } = visit.store
  const [name = '', digits = ''] = ['name', 'number'].map((each) => sent.get(each)?.trim() ?? '')
  const [former, shown] = [category?.name, sent.get('shown')]
  const saved = (number: bigint) => ({ redirect: `/categories?saved=${number}` })
  const wrong = (at: 'name' | 'number', message: string, stored = category) =>
    formPage(visit, stored, [new FieldProblem(at, message)])
  if (category !== undefined) {
    // Left alone, or sent twice.
    if (name === shown || name === former) return saved(category.number)
    if (shown !== former) return wrong('name', RENAMED)
  }
  const isFull = category === undefined && visit.categories.names.size >= CATEGORIES_MOST
  const wrongName = isFull ? `At most ${count(CATEGORIES_MOST)} categories can have a name` : categoryNameProblem(name)
  if (wrongName !== undefined) return wrong('name', wrongName)
  const number = category?.number ?? (digits === '' ? await freeNumber(visit) : int64FromText(digits))
  if (number === undefined) return wrong('number', 'Enter a whole number in digits, such as 3 or -3')
  const [accountId, subject] = [who.account.id, `${name} (${number})`]
  const done =
    former === undefined ? { action: 'category.added' } : { action: 'category.renamed', detail: `${former} → ${name}` }
  const event = { at: now, accountId, via: 'console', subject, ...done } as AuditEvent
  const found = await categories.save({ number, name }, former, event)
  // A form that was sent twice finds what it has written.
  if (found === undefined || (found.number === number && found.name === name)) return saved(number)
  const taken = `${found.name} (${found.number})`
  if (found.number !== number) return wrong('name', `${taken} has this name already`)
  if (category !== undefined) return wrong('name', RENAMED, found)
  return wrong('number', `There is ${taken} already: rename it, or enter another number`)
}

/** Resolves with the lowest number from 1 that has neither a name nor animals; undefined if the first hundreds are taken. */
async function freeNumber({ store, categories }: MemberVisit): Promise<bigint | undefined> {
  for (let number = 1n; number <= CATEGORIES_MOST; number += 1n) {
    const isTaken = categories.names.has(number) || (await store.pets.list({ categoryId: number, limit: 1 })).length > 0
    if (!isTaken) return number
  }
  return undefined
}

const RENAMED = 'The category was renamed to the name above while you were editing. Rename it again to replace that'

/** Looks up the category that the address names. */
function withCategory(handle: (visit: MemberVisit, category: Category) => Outcome | Promise<Outcome>) {
  return (visit: MemberVisit) => {
    const number = int64FromText(visit.call.parameters['number']!)
    const name = number === undefined ? undefined : visit.categories.names.get(number)
    return number === undefined || name === undefined ? notFoundPage(visit) : handle(visit, { number, name })
  }
}

// The pages of categories: find and list them with how many animals each has, add, rename and remove one. The numbers never change.
import { type Category, categoryNameProblem } from '../../contract/category-name.ts'
import { FieldProblem, Problem } from '../../contract/errors.ts'
import { int64FromText } from '../../contract/int64.ts'
import { addCategory, whyNameTaken } from '../../store/category-store.ts'
import { emptyState, html, type Html, isolated } from '../../http/html/html.ts'
import { CHOOSER, IN_SHOP, listAddress, ROWS, withQuery } from './animal-addresses.ts'
import { authorOf } from './animal-history.ts'
import { countOf, readAsked } from './animal-list.ts'
import { countWords } from './animal-toolbar.ts'
import { about, formPage } from '../every-page/form-page.ts'
import { buttonForm, field, hidden, type Problems, readNotice, signNotice } from '../every-page/forms.ts'
import { forManagers } from '../every-page/managers.ts'
import { paging } from '../every-page/paging.ts'
import { badRequestPage, notFoundPage } from '../every-page/problem-pages.ts'
import { count } from '../every-page/times.ts'
import {
  type ConsoleRoute,
  forMembers,
  type HtmlPage,
  isManager,
  type MemberVisit,
  type Outcome,
} from '../every-page/visit.ts'

const withCategory = about(({ categories }, digits): Category | undefined => {
  const number = int64FromText(digits)
  const name = number === undefined ? undefined : categories.names.get(number)
  return number === undefined || name === undefined ? undefined : { number, name }
})

export const categoryRoutes: readonly ConsoleRoute[] = [
  forMembers('GET', CHOOSER, chooserPage),
  forMembers('GET', '/categories', listPage),
  forMembers('GET', '/categories/new', (visit) => categoryPage(visit)),
  forMembers('POST', '/categories/new', add, { keepsTyped: true }),
  forMembers('GET', '/categories/{number}', withCategory(categoryPage)),
  forMembers('POST', '/categories/{number}', withCategory(rename), { keepsTyped: true }),
  forManagers('POST', '/categories/{number}/remove', remove),
]

/** Shows all categories, of which a press lists one. list.js shows them as a menu. Without a name, the one that is listed is among them. */
function chooserPage({ query, categories }: MemberVisit): Outcome {
  const asked = readAsked(query, IN_SHOP)
  if (asked instanceof Problem) return badRequestPage(400, asked.message)
  const numbers = new Set([undefined, ...categories.names.keys(), asked.categoryId])
  const link = (categoryId: bigint | undefined) => html`<li>
    <a href="${listAddress({ ...asked, categoryId })}" ${categoryId === asked.categoryId && html`aria-current="true"`}>${categoryId === undefined ? 'All categories' : isolated(categories.words(categoryId))}</a></li>`
  return {
    title: 'Choose a category',
    section: 'animals',
    body: html`<p class="back"><a href="${listAddress(asked)}">← Animals</a></p>
      <h1>Choose a category</h1>
      <ul class="choices">${Array.from(numbers, link)}</ul>
      <p class="quiet-text"><a href="/categories">Manage categories</a></p>`,
  }
}

/** Where counting the animals of a category stops. */
const COUNTED = 1000

async function listPage(visit: MemberVisit): Promise<HtmlPage> {
  const { store, query, categories } = visit
  const [after, saved, kept] = ['after', 'saved', 'kept'].map((name) => int64FromText(query.get(name) ?? ''))
  const [q, removed] = [query.get('q')?.trim() ?? '', readNotice(visit, ['removed'])?.removed]
  const all = categories.matching(q)
  const start = all.findIndex((number) => number === after) + 1
  const shown = all.slice(start, start + ROWS)
  const counts = await Promise.all(shown.map((number) => store.pets.countByStatus(number, COUNTED)))
  const rows = shown.map((number, nth) => row(visit, number, countOf(counts[nth]!, {})!, number === saved))
  const pages = {
    first: start > 0 ? withQuery('/categories', { q }) : undefined,
    next: start + ROWS < all.length ? withQuery('/categories', { q, after: String(shown.at(-1)) }) : undefined,
  }
  const range = all.length > ROWS ? `${start + 1}–${start + shown.length} of ${count(all.length)}` : undefined
  return {
    title: 'Categories',
    section: 'categories',
    body: html`<div class="page-head"><h1>Categories</h1><a class="button primary" href="/categories/new">Add a category</a></div>
      ${saved !== undefined && html`<p class="notice good" role="status">Saved: ${isolated(categories.words(saved))}.</p>`}
      ${removed && html`<p class="notice good" role="status">Removed: ${isolated(removed)}. If you add this name again, it gets its number back.</p>`}
      ${kept !== undefined && html`<p class="notice warn" role="alert"><strong>Nothing was removed:</strong> ${isolated(categories.words(kept))} has animals, or another name by now.</p>`}
      <form class="search" method="get" action="/categories" role="search">
        <input name="q" type="search" value="${q}" aria-label="Find a category" placeholder="Name" autocomplete="off" dir="auto"><button class="button">Find</button></form>
      ${
        rows.length === 0
          ? q === ''
            ? emptyState('No category has a name yet', 'Animals show the number of their category until it has one.')
            : emptyState('No category matches', html`<a href="/categories">Show all categories</a>`)
          : html`<table class="table animals">
        <caption class="visually-hidden">Categories, by name</caption>
        <thead><tr><th scope="col">Name</th><th scope="col" class="number">Number</th><th scope="col" class="number">Animals</th>
          <th scope="col"><span class="visually-hidden">Actions</span></th></tr></thead>
        <tbody>${rows}</tbody></table>${paging(pages, range)}`
      }`,
  }
}

/** Managers remove a category that has no animals. */
function row(visit: MemberVisit, number: bigint, animals: number, isFresh: boolean): Html {
  const name = visit.categories.words(number)
  const of = html`<span class="visually-hidden"> ${name}</span>`
  const fields = html`${hidden('shown', name)}<button class="button quiet">Remove${of}</button>`
  return html`<tr ${isFresh && html`class="fresh"`}><th scope="row"><a href="${listAddress({ categoryId: number })}">${isolated(name)}</a></th>
    <td class="number" data-label="Number">${number}</td>
    <td class="number" data-label="Animals">${countWords(animals, COUNTED)}</td>
    <td class="step-cell">${animals === 0 && isManager(visit) && buttonForm(visit, `/categories/${number}/remove`, fields)} <a class="button quiet" href="/categories/${number}">Rename${of}</a></td></tr>`
}

/** Says that the category is removed also if it was before, as by a form that was sent twice. */
async function remove(visit: MemberVisit): Promise<Outcome> {
  const [number, name] = [int64FromText(visit.call.parameters['number']!), visit.form.get('shown') ?? '']
  if (number === undefined) return notFoundPage(visit)
  const event = { ...authorOf(visit), action: 'category.removed', subject: `${name} (${number})` } as const
  const isRemoved = await visit.store.categories.remove({ number, name }, event)
  const isGone = isRemoved || !visit.categories.names.has(number)
  return {
    redirect: withQuery('/categories', isGone ? signNotice(visit, { removed: name }) : { kept: String(number) }),
  }
}

/** Adds a category, or renames the given one. */
function categoryPage(visit: MemberVisit, category?: Category, problems: Problems = []): HtmlPage {
  const typed = (name: string, start = '') => visit.form.get(name) ?? start
  const name = { name: 'name', label: 'Name', hint: 'Such as Cats.', value: typed('name', category?.name) }
  const number = { name: 'number', label: 'Number', hint: NUMBER_HINT, value: typed('number'), numeric: true }
  return formPage(visit, {
    title: category === undefined ? 'Add a category' : 'Rename a category',
    ...(category && { heading: html`Rename ${isolated(category.name)} (${category.number})` }),
    section: 'categories',
    problems,
    action: category === undefined ? '/categories/new' : `/categories/${category.number}`,
    submit: category === undefined ? 'Add category' : 'Rename',
    cancel: '/categories',
    fields: html`${category && hidden('shown', visit.isRestored ? typed('shown') : category.name)}
      ${field({ ...name, problems, focus: true })}
      ${category === undefined && field({ ...number, problems })}`,
  })
}

const NUMBER_HINT = 'The number that animals of this category have. Leave it empty to take a free one.'

async function add(visit: MemberVisit): Promise<Outcome> {
  const [name = '', digits = ''] = ['name', 'number'].map((each) => visit.form.get(each)?.trim())
  const added = await addCategory(visit.store, name, digits, authorOf(visit))
  return added instanceof FieldProblem ? categoryPage(visit, undefined, [added]) : confirm(visit, added, name)
}

/** Takes back no rename that happened since the form was opened. */
async function rename(visit: MemberVisit, category: Category): Promise<Outcome> {
  const { form: sent } = visit
  const { number, name: former } = category
  const [name = '', shown] = [sent.get('name')?.trim(), sent.get('shown')]
  const wrong = (message: string) => categoryPage(visit, category, [new FieldProblem('name', message)])
  // Left alone.
  if (name === shown) return { redirect: '/categories' }
  if (shown !== former) return confirm(visit, category, name, category)
  const problem = categoryNameProblem(name)
  if (problem !== undefined) return wrong(problem)
  const [subject, detail] = [`${name} (${number})`, `${JSON.stringify(former)} → ${JSON.stringify(name)}`]
  const event = { ...authorOf(visit), subject, action: 'category.renamed', detail } as const
  const found = await visit.store.categories.save({ number, name }, former, event)
  // A rename finds no limit in its way.
  const stored = typeof found === 'object' ? found : { number, name }
  return stored.number === number
    ? confirm(visit, stored, name, category)
    : wrong(whyNameTaken(stored, await visit.store.categories.removed()))
}

/** Reports the category as saved if the visitor has named it, also by a form that was sent twice; else says who was first. */
async function confirm(visit: MemberVisit, stored: Category, name: string, renamed?: Category): Promise<Outcome> {
  const words = `${stored.name} (${stored.number})`
  const last = await visit.accounts.lastDone('category.%', words, visit.who.account)
  if (last.isOwn && stored.name === name) return { redirect: `/categories?saved=${stored.number}` }
  const again = stored.name === name ? '' : '. Rename it again to replace that'
  const message = `Nothing was changed: it is ${words} already${last.words}${again}`
  return categoryPage(visit, renamed && stored, [new FieldProblem('name', message)])
}

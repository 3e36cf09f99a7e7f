// The pages of categories: list them with how many animals each has, add one, rename one. The numbers never change.
import { type Category, categoryNameProblem } from '../../contract/category-name.ts'
import { FieldProblem } from '../../contract/errors.ts'
import { int64FromText } from '../../contract/int64.ts'
import { addCategory } from '../../store/category-store.ts'
import { emptyState, html, type Html, isolated } from '../../http/html/html.ts'
import { listAddress } from './animal-addresses.ts'
import { authorOf } from './animal-history.ts'
import { countOf } from './animal-list.ts'
import { countWords } from './animal-toolbar.ts'
import { about, formPage } from '../every-page/form-page.ts'
import { field, hidden, type Problems } from '../every-page/forms.ts'
import { paging } from '../every-page/paging.ts'
import { type ConsoleRoute, forMembers, type HtmlPage, type MemberVisit, type Outcome } from '../every-page/visit.ts'

const withCategory = about(({ categories }, digits): Category | undefined => {
  const number = int64FromText(digits)
  const name = number === undefined ? undefined : categories.names.get(number)
  return number === undefined || name === undefined ? undefined : { number, name }
})

export const categoryRoutes: readonly ConsoleRoute[] = [
  forMembers('GET', '/categories', listPage),
  forMembers('GET', '/categories/new', (visit) => categoryPage(visit)),
  forMembers('POST', '/categories/new', add, { keepsTyped: true }),
  forMembers('GET', '/categories/{number}', withCategory(categoryPage)),
  forMembers('POST', '/categories/{number}', withCategory(rename), { keepsTyped: true }),
]

const SHOWN = 20

async function listPage({ store, query, categories }: MemberVisit): Promise<HtmlPage> {
  const [after, saved] = ['after', 'saved'].map((name) => int64FromText(query.get(name) ?? ''))
  const all = [...categories.names]
  const start = all.findIndex(([number]) => number === after) + 1
  const shown = all.slice(start, start + SHOWN)
  const rows = await Promise.all(
    shown.map(async ([number, name]) =>
      row(number, name, countOf(await store.pets.countByStatus(number), {})!, number === saved),
    ),
  )
  const pages = {
    first: start > 0 ? '/categories' : undefined,
    next: start + SHOWN < all.length ? `/categories?after=${shown.at(-1)![0]}` : undefined,
  }
  return {
    title: 'Categories',
    section: 'categories',
    body: html`<div class="page-head"><h1>Categories</h1><a class="button primary" href="/categories/new">Add a category</a></div>
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

function row(number: bigint, name: string, animals: number, isFresh: boolean): Html {
  return html`<tr ${isFresh && html`class="fresh"`}><th scope="row"><a href="${listAddress({ categoryId: number })}">${isolated(name)}</a></th>
    <td class="number" data-label="Number">${number}</td>
    <td class="number" data-label="Animals">${countWords(animals)}</td>
    <td class="step-cell"><a class="button quiet" href="/categories/${number}">Rename<span class="visually-hidden"> ${name}</span></a></td></tr>`
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
    : wrong(`${stored.name} (${stored.number}) has this name already`)
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

// The page of all categories, from which one is chosen for the list. list.js shows it as a menu.
import { Problem } from '../../contract/errors.ts'
import { html, type Html, isolated } from '../../http/html/html.ts'
import { IN_SHOP, listAddress } from './animal-addresses.ts'
import { readAsked } from './animal-list.ts'
import { badRequestPage } from '../every-page/problem-pages.ts'
import { type ConsoleRoute, forMembers, type MemberVisit, type Outcome } from '../every-page/visit.ts'

export const CHOOSER = '/animals/category'

export const categoryChooserRoutes: readonly ConsoleRoute[] = [forMembers('GET', CHOOSER, chooserPage)]

/** The links keep the other filters. A category without a name is among them only if it was chosen. */
function chooserPage({ query, categories }: MemberVisit): Outcome {
  const asked = readAsked(query, IN_SHOP)
  if (asked instanceof Problem) return badRequestPage(400, asked.message)
  const own = asked.categoryId === undefined ? [] : [asked.categoryId]
  const numbers = new Set([...categories.names.keys(), ...own])
  const q = query.get('q') ?? ''
  const link = (categoryId: bigint | undefined, words: Html | string) => html`<li>
    <a href="${listAddress({ ...asked, categoryId }, { q })}" ${categoryId === asked.categoryId && html`aria-current="true"`}>${words}</a></li>`
  return {
    title: 'Choose a category',
    section: 'animals',
    body: html`<p class="back"><a href="${listAddress(asked, { q })}">← Animals</a></p>
      <h1>Choose a category</h1>
      <ul class="choices">${link(undefined, 'All categories')}${Array.from(numbers, (number) => link(number, isolated(categories.words(number))))}</ul>
      <p class="quiet-text"><a href="/categories">Manage categories</a></p>`,
  }
}

// The page of recent changes: who added, changed and removed which animals, newest first, of everybody or of one person.
import { entryOf } from '../contract/entry-of.ts'
import { int64FromText } from '../contract/int64.ts'
import { PAGE_SIZE } from '../contract/limits.ts'
import { decodeCursor, encodeCursor } from '../contract/list-query.ts'
import { emptyState, html, type Html, isolated } from '../http/html.ts'
import type { ChangePlace, PetChange } from '../store/pet-changes.ts'
import { withQuery } from './animal-addresses.ts'
import { byWhom, readNames, timelineEntry } from './animal-history.ts'
import { paging } from './paging.ts'
import { badRequestPage } from './problem-pages.ts'
import { type ConsoleRoute, forMembers, type MemberVisit, type Outcome } from './visit.ts'

const PATH = '/animals/changes'

export const recentChangesRoutes: readonly ConsoleRoute[] = [forMembers('GET', PATH, changesPage)]

async function changesPage(visit: MemberVisit): Promise<Outcome> {
  const { store, query } = visit
  const [person, from] = [query.get('person')?.trim() ?? '', query.get('from')]
  const after = from === null ? undefined : placeFrom(from)
  if (after === null) return badRequestPage(400, 'This page of the recent changes does not exist.')
  // An unknown address finds nothing, like that of somebody who changed nothing: the page tells nobody who has an account.
  const by = person === '' ? undefined : ((await store.accounts.accountByEmail(person))?.id ?? '')
  const { changes, next } = await store.pets.changes({ by, after, limit: PAGE_SIZE.default })
  const entries = await entriesOf(visit, changes)
  const newest = from === null ? undefined : withQuery(PATH, { person })
  return {
    title: 'Recent changes',
    section: 'animals',
    body: html`<p class="back"><a href="/animals">← Animals</a></p>
      <div class="page-head"><h1>Recent changes</h1><form class="filter" method="get" action="${PATH}">
        <label>By <input name="person" type="search" value="${person}" placeholder="Email address" autocomplete="off"></label>
        <button class="button">Filter</button></form></div>
      ${person !== '' && html`<p class="quiet-text">What ${isolated(person)} did here, without what keys added. <a href="${PATH}">Show all changes</a></p>`}
      ${entries.length > 0 ? html`<ol class="timeline">${entries}</ol>` : emptyState('No changes', 'Whatever is added, changed or removed is listed here.')}
      ${paging({ newest, older: next && withQuery(PATH, { person, from: placeText(next) }) })}`,
  }
}

/** Renders changes, each with a link to its animal, which has no page once it was removed. */
async function entriesOf(visit: MemberVisit, changes: readonly PetChange[]): Promise<Html[]> {
  const authors = changes.map(({ done }) => done?.by)
  const nameOf = await readNames(visit, authors)
  const entries = changes.map(async ({ action, subject, detail = '', done }) => {
    const id = int64FromText(/\((-?\d+)\)$/.exec(subject)?.[1] ?? '')
    const hasPage = id !== undefined && (await visit.store.pets.get(id)) !== undefined
    const animal = hasPage ? html`<a href="/animals/${id}">${isolated(subject)}</a>` : isolated(subject)
    const what = `${entryOf(WORDS, action) ?? ''}${detail}`
    return timelineEntry(html`${animal} · ${isolated(what)}`, byWhom(done, nameOf))
  })
  return Promise.all(entries)
}

/** What comes before the detail of a change. */
const WORDS = { 'pet.added': 'Added', 'pet.removed': 'Removed: ' }

/** Writes a place for an address: two cursors, of which one may be missing. */
function placeText({ petId, eventId }: ChangePlace): string {
  return [petId, eventId].map((id) => (id === undefined ? '' : encodeCursor(id))).join('.')
}

/** Returns null for text that `placeText` did not make. */
function placeFrom(text: string): ChangePlace | null {
  const [petId, eventId] = text.split('.').map((part) => (part === '' ? undefined : decodeCursor(part)))
  const place = { petId, eventId }
  return placeText(place) === text ? place : null
}

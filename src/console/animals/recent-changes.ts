// The page of recent changes: who added, changed and removed which animals, newest first, by day, of everyone or of one person.
import { PAGE_SIZE } from '../../contract/limits.ts'
import { decodeCursor, encodeCursor } from '../../contract/list-query.ts'
import { longDate } from '../../contract/operations.ts'
import { PET_STATUSES } from '../../contract/pets.ts'
import { emptyState, html, type Html, isolated, isolatedNames } from '../../http/html/html.ts'
import type { ChangePlace, PetChange } from '../../store/pet-changes.ts'
import { withQuery } from './animal-addresses.ts'
import { STATUS_WORDS } from '../../contract/pet-words.ts'
import { byWhom, eventInWords, readNames, timelineEntry } from './animal-history.ts'
import { optionList } from '../every-page/forms.ts'
import { paging } from '../every-page/paging.ts'
import { badRequestPage } from '../every-page/problem-pages.ts'
import { type ConsoleRoute, forMembers, type MemberVisit, type Outcome } from '../every-page/visit.ts'

const PATH = '/animals/changes'

export const recentChangesRoutes: readonly ConsoleRoute[] = [forMembers('GET', PATH, changesPage)]

async function changesPage(visit: MemberVisit): Promise<Outcome> {
  const { store, query } = visit
  const [person, from] = [query.get('person')?.trim() ?? '', query.get('from')]
  const after = from === null ? undefined : placeFrom(from)
  if (after === null) return badRequestPage(400, 'This page of the recent changes does not exist.')
  const authors = await store.accounts.authors()
  // Another id finds nothing, and is not repeated: the page tells nobody who has an account, nor what a link says.
  const name = authors.get(person)
  const by = person === '' ? undefined : name === undefined ? '' : person
  const { changes, next } = await store.pets.changes({ by, after, limit: PAGE_SIZE.default })
  const days = await daysOf(visit, changes)
  const people = Array.from(authors, ([id, words]) => [id, id === visit.who.account.id ? 'You' : words] as const)
  const options = [['', 'Everyone'] as const, ...people]
  const newest = from === null ? undefined : withQuery(PATH, { person })
  return {
    title: 'Recent changes',
    section: 'history',
    body: html`<p class="back"><a href="/animals">← Animals</a></p>
      <div class="page-head"><h1>Recent changes</h1><form class="filter" method="get" action="${PATH}" autocomplete="off">
        <label>By <select name="person">${optionList(options, person)}</select></label>
        <button class="button">Filter</button></form></div>
      ${person !== '' && html`<p class="quiet-text">What ${name === undefined ? 'this person' : isolated(name)} did here, without what keys added. <a href="${PATH}">Show all changes</a></p>`}
      ${days.length > 0 ? days : emptyState('No changes', 'Whatever is added, changed or removed is listed here.')}
      ${paging({ newest, older: next && withQuery(PATH, { person, from: placeText(next) }) })}`,
  }
}

/**
 * Renders the changes of each day, each with a link to its animal. That of a removal also says who added the animal, which no other entry
 * does any more. One without a time belongs to the day of the one before. console.js makes them days of the browser's time zone.
 */
async function daysOf(visit: MemberVisit, changes: readonly PetChange[]): Promise<Html[]> {
  const authors = changes.flatMap(({ done, data }) => [done?.by, data?.added?.by])
  const nameOf = await readNames(visit, authors)
  const entries = new Map<string, Html[]>()
  let day = 'Not recorded'
  for (const change of changes) {
    const { subject, petId: id, data, done } = change
    const words = eventInWords(change)
    const animal = id === undefined ? isolated(subject) : html`<a href="/animals/${id}">${isolated(subject)}</a>`
    const what = words !== '' && html` · ${isolatedNames(words)}`
    const addition = data?.added && html`; Added: ${byWhom(data.added, nameOf)}`
    if (done !== undefined) day = longDate(done.at)
    const entry = timelineEntry(html`${markOf(change)} ${animal}${what}${addition}`, byWhom(done, nameOf))
    entries.set(day, [...(entries.get(day) ?? []), entry])
  }
  return Array.from(
    entries,
    ([name, own]) => html`<section class="day"><h2>${name}</h2><ol class="timeline">${own}</ol></section>`,
  )
}

const MARKS: Record<PetChange['action'], readonly [kind: string, words: string]> = {
  'pet.added': ['good', 'Added'],
  'pet.changed': ['changed', 'Changed'],
  'pet.removed': ['bad', 'Removed'],
}

/** Says what a change means: that of a status is the status. */
function markOf({ action, data }: PetChange): Html {
  const status = PET_STATUSES.find((each) => action === 'pet.changed' && data?.to?.status === each)
  const [kind, said] = status === undefined ? MARKS[action] : [status, STATUS_WORDS[status]]
  return html`<span class="mark ${kind}">${said}</span>`
}

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

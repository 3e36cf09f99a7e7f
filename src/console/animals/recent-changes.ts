// The history: who added, changed and removed which animals, newest first, by day, of everyone or of one person.
import { PAGE_SIZE } from '../../contract/limits.ts'
import { decodeCursor, encodeCursor } from '../../contract/list-query.ts'
import { PET_STATUSES } from '../../contract/pets.ts'
import { emptyState, html, type Html, isolated } from '../../http/html/html.ts'
import type { Batch } from '../../store/batches/batch.ts'
import type { ChangePlace, PetChange } from '../../store/pet-changes.ts'
import { withQuery } from './animal-addresses.ts'
import { labelOf, STATUS_WORDS, textInWords } from '../../contract/pet-words.ts'
import { entryOf } from '../../contract/text/entry-of.ts'
import { addressOf, mayUndo, press } from './animal-batches.ts'
import { byWhom, changedAnimal, readNames, timelineEntry } from './animal-history.ts'
import { optionList } from '../every-page/forms.ts'
import { clock, counted, dayName } from '../every-page/times.ts'
import { paging } from '../every-page/paging.ts'
import { badRequestPage } from '../every-page/problem-pages.ts'
import { type ConsoleRoute, forMembers, type MemberVisit, type Outcome } from '../every-page/visit.ts'

const PATH = '/animals/changes'

export const recentChangesRoutes: readonly ConsoleRoute[] = [forMembers('GET', PATH, changesPage)]

async function changesPage(visit: MemberVisit): Promise<Outcome> {
  const { store, query } = visit
  const [person, from] = [query.get('person')?.trim() ?? '', query.get('from')]
  const after = from === null ? undefined : placeFrom(from)
  if (after === null) return badRequestPage(400, 'This page of the history does not exist.')
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
    title: 'History',
    section: 'history',
    body: html`<p class="back"><a href="/animals">← Animals</a></p>
      <div class="page-head"><h1>History</h1><form class="filter" method="get" action="${PATH}" autocomplete="off">
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
async function daysOf(visit: MemberVisit, listed: readonly PetChange[]): Promise<Html[]> {
  const { accounts } = visit.store
  /** A batch of one animal is shown as its change. */
  const changes = await Promise.all(
    listed.map(async (change) => {
      const [only] = change.batch?.changed === 1 ? await accounts.changesIn(change.batch.id, 1) : []
      return { ...change, ...(only as Pick<PetChange, 'action' | 'subject' | 'petId' | 'detail' | 'data'> | undefined) }
    }),
  )
  const authors = changes.flatMap(({ done, data }) => [done?.by, data?.added?.by])
  const nameOf = await readNames(visit, authors)
  const entries = new Map<string, Html[]>()
  let day = 'Not recorded'
  for (const change of changes) {
    const { data, done, batch } = change
    const addition = data?.added && html`; Added: ${byWhom(data.added, nameOf)}`
    if (done !== undefined) day = dayName(done.at, visit.now)
    const what = batch && change.action === 'batch' ? namesOf(visit, batch) : changedAnimal(change)
    const undoable = batch && mayUndo(visit, batch) && press(visit, batch, 'Undo', 'page')
    const by = done ? html`${nameOf(done.by)}, ${clock(done.at)}` : byWhom(done, nameOf)
    const entry = timelineEntry(html`${markOf(change)} ${what}${addition}${undoable}`, by)
    entries.set(day, [...(entries.get(day) ?? []), entry])
  }
  return Array.from(
    entries,
    ([name, own]) => html`<section class="day"><h2>${name}</h2><ol class="timeline">${own}</ol></section>`,
  )
}

/** Names the category that many animals got, or the file that they came from, and leads to them. A mark says the status. */
function namesOf({ categories }: MemberVisit, batch: Batch): Html {
  const { field, to = '', file } = batch.data
  const isSaid = field === 'status' && batch.action === 'changed'
  const got = field && !isSaid && html` · ${labelOf(field)}: ${isolated(textInWords(field, to, categories))}`
  return html`<a href="${addressOf(batch)}">${counted(batch.changed, 'animal')}</a>${got}${file && html` · ${isolated(file)}`}`
}

const MARKS: Record<string, readonly [kind: string, words: string]> = {
  added: ['good', 'Added'],
  imported: ['good', 'Added'],
  changed: ['changed', 'Changed'],
  removed: ['bad', 'Removed'],
  undone: ['changed', 'Undone'],
}

/** Says what a change means: that of a status is the status. */
function markOf({ action, data, batch }: PetChange): Html {
  const isOfStatus = action === 'batch' && batch?.action === 'changed' && batch.data.field === 'status'
  const to = isOfStatus ? batch.data.to : action === 'pet.changed' && data?.to?.status
  const status = PET_STATUSES.find((each) => each === to)
  const did = action === 'batch' ? batch!.action : action.replace('pet.', '')
  const [kind, said] = status ? [status, STATUS_WORDS[status]] : (entryOf(MARKS, did) ?? MARKS['changed']!)
  return html`<span class="mark ${kind}">${said}</span>`
}

/** Writes a place for an address: three cursors, of which some may be missing. */
function placeText({ petId, eventId, batchId }: ChangePlace): string {
  return [petId, eventId, batchId].map((id) => (id === undefined ? '' : encodeCursor(id))).join('.')
}

/** Returns null for text that `placeText` did not make. */
function placeFrom(text: string): ChangePlace | null {
  const [petId, eventId, batchId] = text.split('.').map((part) => (part === '' ? undefined : decodeCursor(part)))
  const place = { petId, eventId, batchId }
  return placeText(place) === text ? place : null
}

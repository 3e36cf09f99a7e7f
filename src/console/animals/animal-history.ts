// The history of an animal: shows who added it, who changed what, and when.
import { valuesInWords } from '../../contract/pet-words.ts'
import type { FieldName, Pet } from '../../contract/pets.ts'
import type { Author, PetData, RecordedEvent } from '../../store/account-store.ts'
import type { Addition } from '../../store/pet-columns.ts'
import { html, type Html, isolated, isolatedNames } from '../../http/html/html.ts'
import { notFoundPage } from '../every-page/problem-pages.ts'
import { minute, shortTime } from '../every-page/times.ts'
import type { HtmlPage, MemberVisit } from '../every-page/visit.ts'

export const CHANGES_SHOWN = 20

export interface Change extends RecordedEvent {
  /** The author of the change, as the page names them: a name, or "You". */
  by: Html
  byVisitor: boolean
}

/** Returns the author of what the visitor does, as the audit trail has it. */
export function authorOf({ who, now: at }: MemberVisit): Author {
  return { at, accountId: who.account.id, via: 'console' }
}

/** What an event tells of an animal. */
interface Told {
  petId?: bigint | undefined
  subject: string
  data?: PetData | undefined
  detail?: string | undefined
}

export function eventInWords({ data, detail = '' }: Told): string {
  return data === undefined ? detail : valuesInWords(data)
}

/** Names an animal, with a link to it, and says what happened to it. */
export function changedAnimal(change: Told): Html {
  const { subject, petId: id } = change
  const words = eventInWords(change)
  const animal = id === undefined ? isolated(subject) : html`<a href="/animals/${id}">${isolated(subject)}</a>`
  return html`${animal}${words !== '' && html` · ${isolatedNames(words)}`}`
}

/** Returns the newest change of a field, which gave it its present value. */
export function lastChangeOf<T extends RecordedEvent>(field: FieldName, changes: readonly T[]): T | undefined {
  return changes.find(({ data }) => data && (field in data.from || field in (data.to ?? {})))
}

/** Resolves with the changes of an animal, and with the words for by whom and when it was added. */
export async function readHistory(visit: MemberVisit, petId: bigint): Promise<{ changes: Change[]; added: Html }> {
  const { store, who } = visit
  // Reads one change more than the page shows, to see whether there are more.
  const changing = store.accounts.changesOf(petId, CHANGES_SHOWN + 1)
  const [events, stored] = await Promise.all([changing, store.pets.addition(petId)])
  const addition = stored ?? events[0]?.data?.added
  const nameOf = await readNames(visit, [addition?.by, ...events.map(({ accountId }) => accountId)])
  const changes = events.map((event) => {
    const words = eventInWords(event) || 'Details unknown'
    return {
      ...event,
      detail: event.action === 'pet.removed' ? `Removed: ${words}` : words,
      byVisitor: event.accountId === who.account.id,
      by: nameOf(event.accountId),
    }
  })
  return { changes, added: byWhom(addition, nameOf) }
}

/** Returns the words for the id of an account or a key. What has none was imported from a file, or made up. */
export type NameOf = (id: string | undefined) => Html

/** Reads the names of these accounts and keys, each once. A deleted account takes its keys along; a revoked key keeps its name. */
export async function readNames({ store, who }: MemberVisit, ids: readonly (string | undefined)[]): Promise<NameOf> {
  const isKey = (id = '') => id.startsWith('key_')
  const keys = await Promise.all(Array.from(new Set(ids.filter(isKey)), (id) => store.accounts.keyById(id!)))
  const owners = keys.map((key) => key?.accountId)
  const others = [...ids, ...owners].flatMap((id = who.account.id) => (id === who.account.id || isKey(id) ? [] : [id]))
  const names = await store.accounts.namesOf(others)
  const nameOf: NameOf = (id) => {
    if (id === who.account.id) return html`You`
    const key = keys.find((each) => each?.id === id)
    if (key !== undefined) return html`${nameOf(key.accountId)}, with the key ${isolated(key.name)}`
    const name = names.get(id ?? '')
    return name === undefined ? html`${isKey(id) ? 'A key of a' : 'A'} deleted account` : isolated(name)
  }
  return (id) => (id === undefined ? html`On the command line` : nameOf(id))
}

/** Resolves with by whom and since when animals are reserved: by their newest change of status, else by who has added them. */
export async function readReservations(visit: MemberVisit, pets: readonly Pet[]): Promise<Map<bigint, Html>> {
  const { store, now } = visit
  const ids = pets.flatMap(({ id, status }) => (status === 'pending' ? [id] : []))
  if (ids.length === 0) return new Map()
  const [steps, additions] = await Promise.all([store.accounts.statusChanges(ids), store.pets.additions(ids)])
  const reserved = ids.flatMap((id) => {
    const step = steps.find(({ petId }) => petId === id)
    const isKnown = step === undefined || step.data?.to?.status === 'pending'
    const done = step ? { at: step.at, by: step.accountId } : additions.get(id)
    return isKnown && done ? [{ id, ...done }] : []
  })
  const makers = reserved.map(({ by }) => by)
  const nameOf = await readNames(visit, makers)
  return new Map(reserved.map(({ id, at, by }) => [id, html`${shortTime(at, now)} · ${nameOf(by)}`]))
}

/** Says by whom and when something was done; "Not recorded" for animals whose addition was not. */
export function byWhom(done: Addition | undefined, nameOf: NameOf): Html {
  return done === undefined ? html`Not recorded` : html`${nameOf(done.by)}, ${minute(done.at)}`
}

export function timelineEntry(what: Html | string, done: Html): Html {
  return html`<li>${what} <span class="quiet-text">${done}</span></li>`
}

/** Says what an animal was, and who removed it; resolves with "Page not found" for an id that no animal had. */
export async function removedPage(visit: MemberVisit, petId: bigint): Promise<HtmlPage> {
  const { changes, added } = await readHistory(visit, petId)
  const removal = changes.find(({ action }) => action === 'pet.removed')
  if (removal === undefined) return notFoundPage(visit)
  return {
    status: 404,
    title: 'Removed animal',
    section: 'animals',
    body: html`<p class="back"><a href="/animals">← Animals</a></p>
      <h1>${isolated(removal.subject)}</h1>
      <p class="notice warn" role="status">${removal.by} removed this animal, ${minute(removal.at)}.</p>
      ${timeline(changes, added)}`,
  }
}

/** Renders the changes, newest first, down to the day the animal was added. */
export function timeline(changes: readonly Change[], added: Html): Html {
  const shown = changes.slice(0, CHANGES_SHOWN)
  return html`<section aria-labelledby="timeline">
    <h2 id="timeline">Timeline</h2>
    <ol class="timeline">${shown.map(({ by, at, detail }) => timelineEntry(isolatedNames(detail ?? ''), html`${by}, ${minute(at)}`))}
      ${changes.length > CHANGES_SHOWN && html`<li class="quiet-text">Only the newest ${CHANGES_SHOWN} changes are shown.</li>`}
      ${timelineEntry('Added', added)}</ol>
  </section>`
}

/** Says who changed an animal while the visitor was editing it. It may be the same visitor, in another tab. */
export function whoChanged(last: Change | undefined): Html {
  if (last === undefined) return html`This animal was changed while you were editing it.`
  if (last.byVisitor) return html`You changed this animal in another tab, ${minute(last.at)}.`
  return html`${last.by} changed this animal while you were editing it, ${minute(last.at)}.`
}

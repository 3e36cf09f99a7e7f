// The changes of an animal in the audit trail: writes one with its change, and shows who changed what, and when.
import { FIELD_NAMES, type NewPet, type Pet } from '../contract/pets.ts'
import { petSubject, type RecordedEvent } from '../store/account-store.ts'
import type { Updated } from '../store/store.ts'
import { html, type Html, isolated } from '../http/html.ts'
import { inWords, labelOf } from './animal-form.ts'
import { minute } from './times.ts'
import type { MemberVisit } from './visit.ts'

const CHANGES_SHOWN = 20

export interface Change extends RecordedEvent {
  /** The author of the change, as the page names them: an email address, or "You". */
  by: Html
  byVisitor: boolean
}

/** Changes an animal if it still equals `pet`, with the event that says who changed what. */
export function saveChange({ store, who, now: at }: MemberVisit, pet: Pet, wanted: NewPet): Promise<Updated> {
  const [accountId, subject, detail] = [who.account.id, petSubject(pet), difference(pet, wanted)]
  const event = { at, accountId, action: 'pet.changed', via: 'console', subject, detail } as const
  return store.pets.update(pet.id, pet, wanted, event)
}

/** Describes each changed field, such as "Status: Pending → Sold"; returns an empty text if there is none. */
export function difference(from: NewPet, to: NewPet): string {
  return FIELD_NAMES.filter((name) => from[name] !== to[name])
    .map((name) => `${labelOf(name)}: ${inWords(from, name)} → ${inWords(to, name)}`)
    .join('; ')
}

export async function readChanges({ store, who }: MemberVisit, petId: bigint): Promise<Change[]> {
  // Reads one change more than the page shows, to see whether there are more.
  const events = await store.accounts.changesOf(petId, CHANGES_SHOWN + 1)
  const ids = new Set(events.map(({ accountId }) => accountId))
  const found = await Promise.all(Array.from(ids, (id) => store.accounts.accountById(id)))
  return events.map((event) => {
    const byVisitor = event.accountId === who.account.id
    const author = found.find((account) => account?.id === event.accountId)
    const by = byVisitor ? html`You` : author === undefined ? html`A deleted account` : isolated(author.email)
    return { ...event, byVisitor, by }
  })
}

/** Renders the changes, newest first, down to the day the animal was added. */
export function timeline(changes: readonly Change[]): Html {
  const items = changes
    .slice(0, CHANGES_SHOWN)
    .map(
      ({ by, at, detail }) =>
        html`<li>${isolated(detail ?? '')} <span class="quiet-text">${by}, ${minute(at)}</span></li>`,
    )
  return html`<section aria-labelledby="timeline">
    <h2 id="timeline">Timeline</h2>
    <ol class="timeline">${items}
      ${changes.length > CHANGES_SHOWN && html`<li class="quiet-text">Only the newest ${CHANGES_SHOWN} changes are shown.</li>`}
      <li>Added <span class="quiet-text">By whom and when was not recorded.</span></li></ol>
  </section>`
}

/** Says who changed an animal while the visitor was editing it. It may be the same visitor, in another tab. */
export function whoChanged(last: Change | undefined): Html {
  if (last === undefined) return html`This animal was changed while you were editing it.`
  if (last.byVisitor) return html`You changed this animal in another tab, ${minute(last.at)}.`
  return html`${last.by} changed this animal while you were editing it, ${minute(last.at)}.`
}

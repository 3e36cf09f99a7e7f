// Shows who changed an animal, when, and what, from the audit trail.
import type { RecordedEvent } from '../store/account-store.ts'
import { html, type Html, isolated } from '../http/html.ts'
import { minute } from './times.ts'
import type { MemberVisit } from './visit.ts'

const CHANGES_SHOWN = 20

export interface Change extends RecordedEvent {
  /** The author of the change, as the page names them: an email address, or "You". */
  by: Html
  byVisitor: boolean
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

export function history(changes: readonly Change[]): Html {
  const items = changes
    .slice(0, CHANGES_SHOWN)
    .map(
      ({ by, at, detail }) =>
        html`<li>${isolated(detail ?? '')} <span class="quiet-text">${by}, ${minute(at)}</span></li>`,
    )
  return html`<section aria-labelledby="history">
    <h2 id="history">Changes</h2>
    ${items.length === 0 ? html`<p class="quiet-text">Not changed since it was added.</p>` : html`<ol class="history">${items}</ol>`}
    ${changes.length > CHANGES_SHOWN && html`<p class="quiet-text">Only the newest ${CHANGES_SHOWN} are shown.</p>`}
  </section>`
}

/** Says who changed an animal while the visitor was editing it. It may be the same visitor, in another tab. */
export function whoChanged(last: Change | undefined): Html {
  if (last === undefined) return html`This animal was changed while you were editing it.`
  if (last.byVisitor) return html`You changed this animal in another tab, ${minute(last.at)}.`
  return html`${last.by} changed this animal while you were editing it, ${minute(last.at)}.`
}

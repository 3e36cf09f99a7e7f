// Who changed an animal, what and when, from the audit trail.
import type { AuditEvent } from '../store/account-store.ts'
import { html, type Html, isolated } from './html.ts'
import { minute } from './times.ts'
import type { MemberVisit } from './visit.ts'

const CHANGES_SHOWN = 20

export interface Change extends AuditEvent {
  /** Who made it, as the visitor is told. */
  by: Html
  byVisitor: boolean
}

/** Reads the newest changes of an animal. */
export async function readChanges({ store, who }: MemberVisit, petId: bigint): Promise<Change[]> {
  const events = await store.accounts.changesOf(petId, CHANGES_SHOWN)
  const ids = [...new Set(events.map(({ accountId }) => accountId))]
  const accounts = new Map(
    await Promise.all(ids.map(async (id) => [id, await store.accounts.accountById(id)] as const)),
  )
  return events.map((event) => {
    const byVisitor = event.accountId === who.account.id
    const email = accounts.get(event.accountId)?.email
    return {
      ...event,
      byVisitor,
      by: byVisitor ? html`You` : email === undefined ? html`A deleted account` : isolated(email),
    }
  })
}

export function history(changes: readonly Change[]): Html {
  const items = changes.map(
    ({ by, at, detail }) =>
      html`<li>${isolated(detail ?? '')} <span class="quiet-text">${by}, ${minute(at)}</span></li>`,
  )
  return html`<section aria-labelledby="history">
    <h2 id="history">Changes</h2>
    ${items.length === 0 ? html`<p class="quiet-text">Not changed since it was added.</p>` : html`<ol class="history">${items}</ol>`}
    ${items.length === CHANGES_SHOWN && html`<p class="quiet-text">Only the newest ${CHANGES_SHOWN} are shown.</p>`}
  </section>`
}

/** Says who changed an animal while the visitor was editing it: that may have been the visitor. */
export function whoChanged(last: Change | undefined): Html {
  if (last === undefined) return html`This animal was changed while you were editing it.`
  if (last.byVisitor) return html`You changed this animal in another tab, ${minute(last.at)}.`
  return html`Somebody else, ${last.by}, changed this animal while you were editing it, ${minute(last.at)}.`
}

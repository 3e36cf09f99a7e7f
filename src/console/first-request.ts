// Whether a new key has been used: the page of a new key waits for its first request and says when it came.
import type { ApiKey } from '../store/account-store.ts'
import { html, type Html } from './html.ts'
import { counted } from './times.ts'
import type { HtmlPage, MemberVisit } from './visit.ts'

const REFRESH_SECONDS = 3

/** Without a script, this is a page of its own that reloads itself; console.js shows it in the page of the new key. */
export async function firstRequestPage(visit: MemberVisit, key: ApiKey): Promise<HtmlPage> {
  await visit.flushUsage()
  const calls = await visit.store.accounts.callsSince([key.id], 0)
  const total = calls.reduce((sum, count) => sum + count.calls, 0)
  return {
    title: total === 0 ? 'Waiting for the first request' : 'The first request has arrived',
    section: 'keys',
    ...(total === 0 && { headers: { Refresh: String(REFRESH_SECONDS) } }),
    body: html`<h1><bdi>${key.name}</bdi></h1>${firstRequest(key, total)}
      <p><a href="/activity?key=${key.id}">See its requests</a></p>`,
  }
}

export function firstRequest(key: ApiKey, total: number): Html {
  const words =
    total === 0
      ? 'Waiting for the first request with this key…'
      : `${counted(total, 'request')} with this key so far: it works.`
  return html`<p class="notice ${total > 0 && 'good'}" role="status" data-first-request="/keys/${key.id}/first-request">${words}</p>`
}

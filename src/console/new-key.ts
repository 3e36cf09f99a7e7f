// The pages of a new key: one shows the key, once; the other says whether a request with it has arrived.
import type { MadeKey } from '../accounts/accounts.ts'
import type { ApiKey } from '../store/account-store.ts'
import { html, type Html, isolated } from '../http/html.ts'
import { POLLING_POLICY } from '../http/security-headers.ts'
import { counted, day } from './times.ts'
import { baseAddress, type HtmlPage, type MemberVisit } from './visit.ts'

/** Answers the form itself, without a redirect, so that no address, reload or cache can show the key again. */
export function newKeyPage(visit: MemberVisit, { key, secret }: MadeKey): HtmlPage {
  const list = `curl ${baseAddress(visit)}/pets \\\n  -H "Authorization: Bearer ${secret}"`
  const create = `${list} \\\n  -H "Content-Type: application/json" -d '{"name": "Rex", "categoryId": 3}'`
  return {
    title: 'Your new key',
    section: 'keys',
    headers: { 'Content-Security-Policy': POLLING_POLICY },
    body: html`<h1>Your new key</h1>
      <p class="notice good" role="status"><strong>${isolated(key.name)}</strong> is ready to use. It is shown only
      once: copy it now, and keep it where you keep passwords.</p>
      <div class="secret"><label for="secret">API key</label>
        <input id="secret" class="code-input" readonly value="${secret}" spellcheck="false" autocomplete="off" data-copy-field></div>
      <h2>Try it</h2>
      <p>Add an animal, then list them:</p>
      <pre class="code" tabindex="0" aria-label="Example: add an animal with this key"><code data-copy>${create}</code></pre>
      <pre class="code" tabindex="0" aria-label="Example: list the animals with this key"><code data-copy>${list}</code></pre>
      ${firstRequest(key, 0)}
      <noscript><p><a href="/keys/${key.id}/first-request">See whether it has arrived</a></p></noscript>
      ${key.expiresAt !== undefined && html`<p>It expires on ${day(key.expiresAt)}.</p>`}
      <p class="actions"><a class="button primary" href="/keys">I’ve saved this key</a>
        <a class="button" href="/docs">Open the reference</a></p>`,
  }
}

const REFRESH_SECONDS = 3

/** Says whether a request with the key has arrived, and reloads itself. console.js shows its notice in `newKeyPage`. */
export async function firstRequestPage(visit: MemberVisit, key: ApiKey): Promise<HtmlPage> {
  await visit.flushUsage()
  const calls = await visit.store.accounts.callsSince([key.id], 0)
  const total = calls.reduce((sum, count) => sum + count.calls, 0)
  return {
    title: total === 0 ? 'Waiting for the first request' : 'The first request has arrived',
    section: 'keys',
    ...(total === 0 && { headers: { Refresh: String(REFRESH_SECONDS) } }),
    body: html`<h1>${isolated(key.name)}</h1>${firstRequest(key, total)}
      <p><a href="/activity?key=${key.id}">See its requests</a></p>`,
  }
}

function firstRequest(key: ApiKey, total: number): Html {
  const words =
    total === 0
      ? 'Waiting for the first request with this key…'
      : `${counted(total, 'request')} with this key so far: it works.`
  return html`<p class="notice ${total > 0 && 'good'}" role="status" data-first-request="/keys/${key.id}/first-request">${words}</p>`
}

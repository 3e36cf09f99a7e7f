// The pages of API keys: lists them with their use, generates one, which is shown once, and renames and revokes one.
import { KEY_EXISTS, KEY_NAME_MAX_LENGTH, NoAccount } from '../../accounts/account-problems.ts'
import type { MadeKey } from '../../accounts/accounts.ts'
import { redacted } from '../../accounts/api-keys.ts'
import { newToken } from '../../accounts/sessions.ts'
import { FieldProblem, Problem } from '../../contract/errors.ts'
import type { ApiKey } from '../../store/account-store.ts'
import { FETCHING_POLICY } from '../../http/html/security-headers.ts'
import { about, formPage } from '../every-page/form-page.ts'
import { choice, field, hidden, type Problems, secretField } from '../every-page/forms.ts'
import { emptyState, html, type Html, isolated } from '../../http/html/html.ts'
import { ALL_KEYS, findOwnKey, keyList, readKeys, sumOf } from './key-list.ts'
import { toSignIn } from '../people/sign-in.ts'
import { counted, DAY_MS, localDay, minute } from '../every-page/times.ts'
import {
  baseAddress,
  type ConsoleRoute,
  forMembers,
  type HtmlPage,
  type MemberVisit,
  type Outcome,
} from '../every-page/visit.ts'

const EXPIRIES = [
  ['', 'Never expires'],
  ['7', 'In 7 days'],
  ['30', 'In 30 days'],
  ['90', 'In 90 days'],
  ['365', 'In a year'],
] as const

const withKey = about(findOwnKey)

export const keyRoutes: readonly ConsoleRoute[] = [
  // What was typed before a sign-in comes back to this address.
  forMembers('GET', '/keys', (visit) => (visit.isRestored ? generatePage(visit) : keysPage(visit))),
  forMembers('GET', '/keys/new', (visit) => (mayHaveKeys(visit) ? generatePage(visit) : { redirect: '/keys' })),
  forMembers('POST', '/keys', generate, { keepsTyped: true }),
  forMembers('GET', '/keys/{id}/first-request', withKey(firstRequestPage)),
  forMembers('GET', '/keys/{id}/rename', withKey(renamePage)),
  forMembers('POST', '/keys/{id}/rename', withKey(rename), { keepsTyped: true }),
  forMembers('GET', '/keys/{id}/revoke', withKey(confirmPage)),
  forMembers('POST', '/keys/{id}/revoke', withKey(revoke)),
]

const mayHaveKeys = ({ who }: MemberVisit) => who.account.role !== 'keyless'

async function keysPage(visit: MemberVisit): Promise<HtmlPage> {
  await visit.flushUsage()
  const mayHave = mayHaveKeys(visit)
  const active = visit.query.get('state') !== 'inactive'
  const page = await readKeys(visit, active)
  const none = active ? NO_KEYS : emptyState('None', 'Keys that were revoked or have expired are listed here.')
  return {
    title: 'Keys',
    section: 'keys',
    body: html`${!active && html`<p class="back"><a href="/keys">← Keys</a></p>`}
      <div class="page-head"><h1>${active ? 'Keys' : 'Keys no longer in use'}</h1>${active && mayHave && html`<a class="button primary" href="/keys/new">Generate a key</a>`}</div>
      ${!mayHave && html`<p class="notice warn" role="status">A manager has taken away your right to keys. Ask a manager if you need one.</p>`}
      ${Object.entries(NOTICES).map(([name, notice]) => visit.query.has(name) && notice)}
      ${page.keys.length > 0 ? keyList(visit, page) : (mayHave || !active) && none}
      ${active && html`<p><a href="/keys?state=inactive">Keys no longer in use</a></p>`}`,
  }
}

const NO_KEYS = emptyState(
  'No active key',
  html`<a href="/keys/new">Generate one</a>. Your program sends it with every request.`,
)

const NAME_HINT = 'To recognise it by, such as laptop or nightly import.'

function generatePage(visit: MemberVisit, problems: Problems = []): HtmlPage {
  const typed = (name: string) => visit.form.get(name) ?? ''
  return formPage(visit, {
    title: 'Generate a key',
    section: 'keys',
    problems,
    action: '/keys',
    submit: 'Generate key',
    cancel: '/keys',
    fields: html`${hidden('formId', newToken())}
      ${field({ name: 'name', label: 'Name', hint: NAME_HINT, value: typed('name'), problems, focus: true })}
      ${choice({ name: 'expires', label: 'Expires', value: typed('expires'), options: EXPIRIES, problems })}`,
  })
}

/** Each is shown if the address has a query parameter of its name. */
export const NOTICES = {
  revoked: html`<p class="notice good" role="status">The key is revoked: every request with it is refused.</p>`,
  renamed: html`<p class="notice good" role="status">Key renamed.</p>`,
  made: html`<p class="notice" role="status">This form has already created its key, and a key is shown only once. If you no
    longer have it, revoke it and generate another.</p>`,
}

async function generate(visit: MemberVisit): Promise<Outcome> {
  const { form: typed, accounts, who, now } = visit
  const expires = readExpiry(typed.get('expires') ?? '', now)
  if (expires instanceof Problem) return generatePage(visit, [expires])
  const [name, formId] = [typed.get('name') ?? '', typed.get('formId') ?? '']
  const made = await accounts.createKey(who.account, name, expires, 'console', formId)
  if (made instanceof NoAccount) return toSignIn('/keys/new')
  if (made === KEY_EXISTS) return { redirect: '/keys?made=yes' }
  return made instanceof Problem ? generatePage(visit, [made]) : newKeyPage(visit, made)
}

function readExpiry(text: string, now: number): number | undefined | FieldProblem {
  if (text === '') return undefined
  if (EXPIRIES.some(([days]) => days === text)) return now + Number(text) * DAY_MS
  return new FieldProblem('expires', 'Choose one of the listed times.')
}

/** Answers the form itself, without a redirect, so that no address, reload or cache can show the key again. */
function newKeyPage(visit: MemberVisit, { key, secret }: MadeKey): HtmlPage {
  const list = `curl ${baseAddress(visit)}/pets \\\n  -H "Authorization: Bearer ${secret}"`
  const create = `${list} \\\n  -H "Content-Type: application/json" -d '{"name": "Rex", "categoryId": 3}'`
  const server = {
    type: 'http',
    url: baseAddress(visit).replace(/v1$/, 'mcp'),
    headers: { Authorization: `Bearer ${secret}` },
  }
  const forAgents = JSON.stringify({ mcpServers: { petstore: server } }, null, 2)
  return {
    title: 'Your new key',
    section: 'keys',
    headers: { 'Content-Security-Policy': FETCHING_POLICY },
    body: html`<h1>Your new key</h1>
      <p class="notice good" role="status"><strong>${isolated(key.name)}</strong> is ready to use. It is shown only
      once: copy it now, and keep it where you keep passwords.</p>
      ${secretField('API key', secret)}
      <h2>Try it</h2>
      <p>Add an animal, then list them:</p>
      <pre class="code" tabindex="0" aria-label="Example: add an animal with this key"><code data-copy>${create}</code></pre>
      <pre class="code" tabindex="0" aria-label="Example: list the animals with this key"><code data-copy>${list}</code></pre>
      <details><summary>Use it in an agent (MCP)</summary>
        <p>Claude Code reads this from <code>.mcp.json</code>, Cursor from <code>.cursor/mcp.json</code>, VS Code from
        <code>.vscode/mcp.json</code> (<code>servers</code>, not <code>mcpServers</code>):</p>
        <pre class="code" tabindex="0" aria-label="Configuration of an agent with this key"><code data-copy>${forAgents}</code></pre>
      </details>
      ${firstRequest(key, 0)}
      <noscript><p><a href="/keys/${key.id}/first-request">See whether it has arrived</a></p></noscript>
      ${key.expiresAt !== undefined && html`<p>It expires on ${localDay(key.expiresAt)}.</p>`}
      <p class="actions"><a class="button primary" href="/keys">I’ve saved this key</a>
        <a class="button" href="/docs">Open the reference</a></p>`,
  }
}

const REFRESH_SECONDS = 3

/** Says whether a request with the key has arrived, and reloads itself. console.js shows its notice in `newKeyPage`. */
async function firstRequestPage(visit: MemberVisit, key: ApiKey): Promise<HtmlPage> {
  await visit.flushUsage()
  const total = sumOf(await visit.store.accounts.callsSince([key.id], 0))
  return {
    title: total === 0 ? 'Waiting for the first request' : 'The first request has arrived',
    section: 'keys',
    headers: { 'Content-Security-Policy': FETCHING_POLICY, ...(total === 0 && { Refresh: String(REFRESH_SECONDS) }) },
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

function confirmPage(visit: MemberVisit, key: ApiKey): Outcome {
  return key.revokedAt === undefined ? revokePage(visit, key) : { redirect: '/keys?revoked=yes' }
}

/** For a manager, `owner` is named, and the page belongs to the keys of everyone. */
export function revokePage(visit: MemberVisit, key: ApiKey, owner?: Html, problems: Problems = []): HtmlPage {
  const list = owner ? ALL_KEYS : '/keys'
  return formPage(visit, {
    title: 'Revoke a key',
    heading: html`Revoke ${isolated(key.name)}?`,
    section: owner ? 'people' : 'keys',
    problems,
    refusedAs: 409,
    above: html`<p>${owner && html`The key belongs to ${owner}.`} Every request with <code>${redacted(key)}</code> will be refused, for good.
      ${key.lastUsedAt === undefined ? 'It was never used.' : html`It was last used ${minute(key.lastUsedAt)}.`}</p>`,
    action: `${list}/${key.id}/revoke`,
    submit: 'Revoke key',
    danger: true,
    cancel: list,
  })
}

async function revoke(visit: MemberVisit, key: ApiKey): Promise<Outcome> {
  const problem = await visit.accounts.revokeFor(visit.who.account, key)
  return problem === undefined ? { redirect: '/keys?revoked=yes' } : revokePage(visit, key, undefined, [problem])
}

function renamePage(visit: MemberVisit, key: ApiKey, problems: Problems = []): HtmlPage {
  const value = visit.form.get('name') ?? key.name
  return formPage(visit, {
    title: 'Rename a key',
    heading: html`Rename ${isolated(key.name)}`,
    section: 'keys',
    problems,
    above: html`<p>The key itself, <code>${redacted(key)}</code>, stays as it is.</p>`,
    action: `/keys/${key.id}/rename`,
    submit: 'Rename',
    cancel: '/keys',
    fields: html`${hidden('shown', visit.isRestored ? (visit.form.get('shown') ?? '') : key.name)}
      ${field({ name: 'name', label: 'Name', hint: `1 to ${KEY_NAME_MAX_LENGTH} characters.`, value, problems, focus: true })}`,
  })
}

/** Takes back no rename that happened since the form was opened. */
async function rename(visit: MemberVisit, key: ApiKey): Promise<Outcome> {
  const [name, shown] = [visit.form.get('name') ?? '', visit.form.get('shown') ?? '']
  if (name === shown) return { redirect: '/keys' }
  const problem = await visit.accounts.renameKey({ ...key, name: shown }, name, 'console')
  return problem === undefined ? { redirect: '/keys?renamed=yes' } : renamePage(visit, key, [problem])
}

// The pages of API keys: lists them with their use, generates one, which is shown once, and renames and revokes one.
import { KEY_EXISTS, KEY_NAME_MAX_LENGTH, type MadeKey, NoAccount } from '../accounts/accounts.ts'
import { redacted } from '../accounts/api-keys.ts'
import { newToken } from '../accounts/sessions.ts'
import { FieldProblem, Problem } from '../contract/errors.ts'
import type { ApiKey } from '../store/account-store.ts'
import { POLLING_POLICY } from '../http/security-headers.ts'
import { choice, field, form, hidden, type Problems, problemSummary, secretField } from './forms.ts'
import { emptyState, html, type Html, isolated } from '../http/html.ts'
import { keyList, type KeyPage, readKeys } from './key-list.ts'
import { notFoundPage } from './problem-pages.ts'
import { toSignIn } from './sign-in.ts'
import { ago, counted, DAY_MS, localDay } from './times.ts'
import { baseAddress, type ConsoleRoute, forMembers, type HtmlPage, type MemberVisit, type Outcome } from './visit.ts'

const EXPIRIES = [
  ['', 'Never expires'],
  ['7', 'In 7 days'],
  ['30', 'In 30 days'],
  ['90', 'In 90 days'],
  ['365', 'In a year'],
] as const

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
  const inactiveOnly = visit.query.get('state') === 'inactive'
  const active = inactiveOnly ? undefined : await readKeys(visit, true)
  const inactive = active === undefined || active.isFirst ? await readKeys(visit, false) : undefined
  return {
    title: 'Keys',
    section: 'keys',
    body: html`<div class="page-head"><h1>Keys</h1>${mayHave && html`<a class="button primary" href="/keys/new">Generate a key</a>`}</div>
      ${!mayHave && html`<p class="notice warn" role="status">A manager has taken away your right to keys. Ask a manager if you need one.</p>`}
      ${Object.entries(NOTICES).map(([name, notice]) => visit.query.has(name) && notice)}
      ${active && (active.keys.length > 0 ? keyList(visit, active) : mayHave && noKeys(inactive))}
      ${inactive && (inactiveOnly ? keyList(visit, inactive) : inactiveKeys(visit, inactive))}`,
  }
}

const NAME_HINT = 'To recognise it by, such as laptop or nightly import.'

/** The form is sent to the address of the keys, as that of earlier releases. */
function generatePage(visit: MemberVisit, problems: Problems = []): HtmlPage {
  const typed = (name: string) => visit.form.get(name) ?? ''
  return {
    title: 'Generate a key',
    section: 'keys',
    ...(problems.length > 0 && { status: 400 }),
    body: html`<div class="narrow">
      <h1>Generate a key</h1>
      ${problemSummary(problems)}
      ${form(visit, {
        action: '/keys',
        submit: 'Generate key',
        cancel: '/keys',
        fields: html`${hidden('formId', newToken())}
          ${field({ name: 'name', label: 'Name', hint: NAME_HINT, value: typed('name'), problems, focus: true })}
          ${choice({ name: 'expires', label: 'Expires', value: typed('expires'), options: EXPIRIES, problems })}`,
      })}
    </div>`,
  }
}

function inactiveKeys(visit: MemberVisit, page: KeyPage): Html | false {
  const total = page.hasMore ? `More than ${page.keys.length} keys` : counted(page.keys.length, 'key')
  return (
    page.keys.length > 0 &&
    html`<details class="inactive"><summary>${total} no longer in use</summary>${keyList(visit, page)}</details>`
  )
}

function noKeys(inactive: KeyPage | undefined): Html {
  const title = inactive?.keys.length === 0 ? 'No keys yet' : 'No active key'
  return emptyState(title, html`<a href="/keys/new">Generate one</a>. Your program sends it with every request.`)
}

/** Each is shown if the address has a query parameter of its name. */
const NOTICES = {
  revoked: html`<p class="notice good" role="status">Key revoked: every request with it is refused from now on.</p>`,
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
  const root = baseAddress(visit).replace(/\/v1$/, '')
  const forAgents = (petstore: object) => JSON.stringify({ mcpServers: { petstore } }, null, 2)
  const remote = forAgents({ type: 'http', url: `${root}/mcp`, headers: { Authorization: `Bearer ${secret}` } })
  const program = forAgents({ command: 'petstore', args: ['mcp', '--url', root], env: { PETSTORE_API_KEY: secret } })
  return {
    title: 'Your new key',
    section: 'keys',
    headers: { 'Content-Security-Policy': POLLING_POLICY },
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
        <pre class="code" tabindex="0" aria-label="Configuration of an agent with this key"><code data-copy>${remote}</code></pre>
        <p>Claude Desktop starts a program, in <code>claude_desktop_config.json</code>:</p>
        <pre class="code" tabindex="0" aria-label="Configuration of Claude Desktop with this key"><code data-copy>${program}</code></pre>
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
  const calls = await visit.store.accounts.callsSince([key.id], 0, DAY_MS)
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

/** Looks up the key that the address names, for a page about it. Another account's key is not found. */
function withKey(handle: (visit: MemberVisit, key: ApiKey) => Outcome | Promise<Outcome>) {
  return async (visit: MemberVisit): Promise<Outcome> => {
    const key = await visit.store.accounts.keyById(visit.call.parameters['id']!)
    return key?.accountId === visit.who.account.id ? handle(visit, key) : notFoundPage(visit)
  }
}

function confirmPage(visit: MemberVisit, key: ApiKey): Outcome {
  if (key.revokedAt !== undefined) return { redirect: '/keys?revoked=yes' }
  return {
    title: 'Revoke a key',
    section: 'keys',
    body: html`<div class="narrow">
      <h1>Revoke ${isolated(key.name)}?</h1>
      <p>Every request with <code>${redacted(key)}</code> will be refused, for good.
      ${key.lastUsedAt === undefined ? 'It was never used.' : html`It was last used ${ago(key.lastUsedAt, visit.now)}.`}</p>
      ${form(visit, { action: `/keys/${key.id}/revoke`, submit: 'Revoke key', danger: true, cancel: '/keys', fields: [] })}
    </div>`,
  }
}

async function revoke({ accounts }: MemberVisit, key: ApiKey): Promise<Outcome> {
  await accounts.revokeKey(key, 'console')
  return { redirect: '/keys?revoked=yes' }
}

function renamePage(visit: MemberVisit, key: ApiKey, problems: Problems = []): HtmlPage {
  const value = visit.form.get('name') ?? key.name
  return {
    title: 'Rename a key',
    section: 'keys',
    ...(problems.length > 0 && { status: 400 }),
    body: html`<div class="narrow">
      <h1>Rename ${isolated(key.name)}</h1>
      ${problemSummary(problems)}
      <p>The key itself, <code>${redacted(key)}</code>, stays as it is.</p>
      ${form(visit, {
        action: `/keys/${key.id}/rename`,
        submit: 'Rename',
        cancel: '/keys',
        fields: html`${hidden('shown', visit.isRestored ? (visit.form.get('shown') ?? '') : key.name)}
          ${field({ name: 'name', label: 'Name', hint: `1 to ${KEY_NAME_MAX_LENGTH} characters.`, value, problems, focus: true })}`,
      })}
    </div>`,
  }
}

/** Takes back no rename that happened since the form was opened: a name that was left alone stays as it is stored. */
async function rename(visit: MemberVisit, key: ApiKey): Promise<Outcome> {
  const [name, shown] = [visit.form.get('name') ?? '', visit.form.get('shown')]
  if (name === shown) return { redirect: '/keys' }
  if (shown !== key.name && name !== key.name) {
    const message = `The key was renamed to ${key.name} while you were editing. Rename it again to replace that name`
    return renamePage(visit, key, [new FieldProblem('name', message)])
  }
  const problem = await visit.accounts.renameKey(key, name, 'console')
  return problem instanceof Problem ? renamePage(visit, key, [problem]) : { redirect: '/keys?renamed=yes' }
}

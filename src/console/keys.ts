// API keys: generate one, see how each is used, revoke one.
import { redacted, stateOf } from '../accounts/api-keys.ts'
import { newToken } from '../accounts/sessions.ts'
import { OPERATIONS } from '../contract/operations.ts'
import { FieldProblem, Refused } from '../contract/refused.ts'
import type { ApiKey, UsageCount } from '../store/store.ts'
import { choice, field, form, hidden, type Problems, problemSummary } from './forms.ts'
import { html, type Html } from './html.ts'
import { newKeyPage } from './new-key.ts'
import { notFoundPage } from './problem-pages.ts'
import { ago, count, counted, day, DAY_MS, longDay } from './times.ts'
import { type ConsoleRoute, forMembers, type MemberVisit, type Outcome, type HtmlPage, param } from './visit.ts'

/** How far back a key's calls are counted here. */
const CALLS_DAYS = 7

const EXPIRIES = [
  ['', 'Never expires'],
  ['7', 'In 7 days'],
  ['30', 'In 30 days'],
  ['90', 'In 90 days'],
  ['365', 'In a year'],
] as const

const DEPRECATED = OPERATIONS.filter(({ deprecation }) => deprecation !== undefined)

export const keyRoutes: readonly ConsoleRoute[] = [
  forMembers('GET', '/keys', (visit) => keysPage(visit)),
  forMembers('POST', '/keys', generate),
  forMembers('GET', '/keys/:id/revoke', withKey(confirmPage)),
  forMembers('POST', '/keys/:id/revoke', withKey(revoke)),
]

async function keysPage(visit: MemberVisit, problems: Problems = []): Promise<HtmlPage> {
  const { store, usage, who, now } = visit
  // Requests counted a moment ago are shown, too.
  await usage.flush()
  const [keys, counts] = await Promise.all([
    store.accounts.listKeys(who.account.id),
    store.accounts.usageSince(who.account.id, now - CALLS_DAYS * DAY_MS),
  ])
  const active = keys.filter((key) => stateOf(key, now) === 'active')
  const inactive = keys.filter((key) => stateOf(key, now) !== 'active')
  const card = (key: ApiKey) => keyCard(visit, key, counts)
  return {
    title: 'Keys',
    section: 'keys',
    ...(problems.length > 0 && { status: 400 }),
    body: html`<h1>Keys</h1>
      ${notice(visit)}${problemSummary(problems)}
      <div class="with-side">
        <section aria-labelledby="yours">
          <h2 id="yours" class="visually-hidden">Your keys</h2>
          ${active.length === 0 ? empty(inactive.length > 0) : html`<ul class="cards">${active.map(card)}</ul>`}
          ${inactive.length > 0 && html`<details class="inactive"><summary>${counted(inactive.length, 'key')} no longer in use</summary>
            <ul class="cards">${inactive.map(card)}</ul></details>`}
        </section>
        <section class="panel side" aria-labelledby="generate">
          <h2 id="generate">Generate a key</h2>
          ${generateForm(visit, problems)}
        </section>
      </div>`,
  }
}

function generateForm(visit: MemberVisit, problems: Problems): Html {
  const typed = (name: string) => visit.form.get(name) ?? ''
  return form(visit, {
    action: '/keys',
    submit: 'Generate key',
    fields: html`${hidden('formId', newToken())}
      ${field({
        name: 'name',
        label: 'Name',
        hint: 'To recognise it by, such as laptop or nightly import.',
        value: typed('name'),
        problems,
      })}
      ${choice({ name: 'expires', label: 'Expires', value: typed('expires'), options: EXPIRIES, problems })}`,
  })
}

function empty(hadSome: boolean): Html {
  return html`<div class="empty"><p><strong>${hadSome ? 'No active key' : 'No keys yet'}</strong></p>
    <p>Name a key and generate it. Your program sends it with every request.</p></div>`
}

function keyCard({ config, now }: MemberVisit, key: ApiKey, counts: readonly UsageCount[]): Html {
  const own = counts.filter(({ keyId }) => keyId === key.id)
  const state = stateOf(key, now)
  return html`<li class="card" id="${key.id}">
    <div class="card-head">
      <div><h3><bdi>${key.name}</bdi></h3><code class="quiet-text">${redacted(key, config.environment)}</code></div>
      ${
        state === 'active'
          ? html`<a class="button quiet" href="/keys/${key.id}/revoke">Revoke<span class="visually-hidden"> ${key.name}</span></a>`
          : html`<span class="mark off">${state === 'revoked' ? 'Revoked' : 'Expired'}</span>`
      }
    </div>
    <dl class="facts">
      <div><dt>Created</dt><dd>${ago(key.createdAt, now)}</dd></div>
      <div><dt>Last used</dt><dd>${key.lastUsedAt === undefined ? 'Never' : ago(key.lastUsedAt, now)}</dd></div>
      ${
        key.revokedAt === undefined
          ? html`<div><dt>Expires</dt><dd>${key.expiresAt === undefined ? 'Never' : day(key.expiresAt)}</dd></div>`
          : html`<div><dt>Revoked</dt><dd>${ago(key.revokedAt, now)}</dd></div>`
      }
      <div><dt>Calls, ${CALLS_DAYS} days</dt><dd class="number">${count(sum(own))}</dd></div>
    </dl>
    ${state === 'active' && DEPRECATED.map((operation) => deprecationWarning(operation, own))}
  </li>`
}

function deprecationWarning({ id, deprecation }: (typeof DEPRECATED)[number], own: readonly UsageCount[]): Html | undefined {
  const calls = sum(own.filter(({ operation }) => operation === id))
  if (calls === 0) return undefined
  return html`<p class="notice warn">Called <code>${id}</code> ${counted(calls, 'time')} in the last ${CALLS_DAYS} days.
    It will be removed on ${longDay(deprecation!.sunset)}. <a href="${deprecation!.documentation}">Migration guide</a></p>`
}

function sum(counts: readonly UsageCount[]): number {
  return counts.reduce((total, { calls }) => total + calls, 0)
}

function notice({ query }: MemberVisit): Html | undefined {
  if (query.has('revoked')) {
    return html`<p class="notice good" role="status">Key revoked: every request with it is refused from now on.</p>`
  }
  if (query.has('made')) {
    return html`<p class="notice" role="status">This form has already created its key, and a key is shown only once. If you no
      longer have it, revoke it and generate another.</p>`
  }
  return undefined
}

async function generate(visit: MemberVisit): Promise<Outcome> {
  const { form: typed, accounts, who, now } = visit
  const expires = readExpiry(typed.get('expires') ?? '', now)
  if (expires instanceof Refused) return keysPage(visit, [expires])
  const made = await accounts.createKeyFromForm(who.account, typed.get('formId') ?? '', typed.get('name') ?? '', expires, 'console')
  if (made === undefined) return { redirect: '/keys?made=yes' }
  return made instanceof Refused ? keysPage(visit, [made]) : newKeyPage(visit, made)
}

function readExpiry(text: string, now: number): number | undefined | FieldProblem {
  if (text === '') return undefined
  if (EXPIRIES.some(([days]) => days === text)) return now + Number(text) * DAY_MS
  return new FieldProblem('expires', 'Choose one of the listed times.')
}

/** Passes on the visitor's own key; somebody else's is not found. */
function withKey(handle: (visit: MemberVisit, key: ApiKey) => Outcome | Promise<Outcome>) {
  return async (visit: MemberVisit): Promise<Outcome> => {
    const key = await visit.store.accounts.keyById(param(visit, 'id'))
    return key?.accountId === visit.who.account.id ? handle(visit, key) : notFoundPage(visit)
  }
}

function confirmPage(visit: MemberVisit, key: ApiKey): Outcome {
  if (key.revokedAt !== undefined) return { redirect: '/keys?revoked=yes' }
  return {
    title: 'Revoke a key',
    section: 'keys',
    body: html`<div class="narrow">
      <h1>Revoke <bdi>${key.name}</bdi>?</h1>
      <p>Every request with <code>${redacted(key, visit.config.environment)}</code> will be refused, for good.
      ${key.lastUsedAt === undefined ? 'It was never used.' : html`It was last used ${ago(key.lastUsedAt, visit.now)}.`}</p>
      ${form(visit, { action: `/keys/${key.id}/revoke`, submit: 'Revoke key', danger: true, cancel: '/keys', fields: [] })}
    </div>`,
  }
}

async function revoke({ accounts }: MemberVisit, key: ApiKey): Promise<Outcome> {
  await accounts.revokeKey(key, 'console')
  return { redirect: '/keys?revoked=yes' }
}

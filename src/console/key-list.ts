// Reads and renders an account's keys with their use, a page at a time.
import { redacted, stateOf } from '../accounts/api-keys.ts'
import { OPERATIONS } from '../contract/operations.ts'
import type { ApiKey, KeyCalls } from '../store/account-store.ts'
import { html, type Html, isolated } from '../http/html.ts'
import { ago, count, counted, day, DAY_MS, longDay } from './times.ts'
import type { MemberVisit } from './visit.ts'

const KEYS_SHOWN = 20
const CALLS_DAYS = 7

const DEPRECATED = OPERATIONS.filter(({ deprecation }) => deprecation !== undefined)

export interface KeyPage {
  keys: readonly ApiKey[]
  calls: ReadonlyMap<string, readonly KeyCalls[]>
  active: boolean
  isFirst: boolean
  hasMore: boolean
}

/** Reads the page of keys that follows the key `after` of the address, or the newest keys. */
export async function readKeys({ store, who, now, query }: MemberVisit, active: boolean): Promise<KeyPage> {
  const accountId = who.account.id
  const last = await store.accounts.keyById(query.get('after') ?? '')
  const after = last?.accountId === accountId ? last : undefined
  const found = await store.accounts.pageOfKeys({ accountId, active, now, after, limit: KEYS_SHOWN + 1 })
  const keys = found.slice(0, KEYS_SHOWN)
  const calls = await store.accounts.callsSince(
    keys.map(({ id }) => id),
    now - CALLS_DAYS * DAY_MS,
  )
  const byKey = Map.groupBy(calls, ({ keyId }) => keyId)
  return { keys, calls: byKey, active, isFirst: after === undefined, hasMore: found.length > keys.length }
}

export function keyList(visit: MemberVisit, page: KeyPage): Html {
  return html`<ul class="cards">${page.keys.map((key) => keyCard(visit, key, page.calls.get(key.id) ?? []))}</ul>
    ${paging(page)}`
}

function paging({ keys, active, isFirst, hasMore }: KeyPage): Html | undefined {
  if (isFirst && !hasMore) return undefined
  const state = active ? '' : 'state=inactive&'
  return html`<nav class="paging" aria-label="${active ? 'Pages' : 'Pages of keys no longer in use'}">
    ${isFirst ? html`<span></span>` : html`<a class="button" href="/keys">← Newest</a>`}
    ${
      hasMore
        ? html`<a class="button" rel="next" href="/keys?${state}after=${keys.at(-1)!.id}">Older →</a>`
        : html`<span class="quiet-text">These are the oldest.</span>`
    }
  </nav>`
}

function keyCard({ now }: MemberVisit, key: ApiKey, own: readonly KeyCalls[]): Html {
  const state = stateOf(key, now)
  return html`<li class="card" id="${key.id}">
    <div class="card-head">
      <div><h3>${isolated(key.name)}</h3><code class="quiet-text">${redacted(key)}</code></div>
      ${
        state === 'active'
          ? html`<div class="card-actions">
              <a class="button quiet" href="/activity?key=${key.id}">Failures<span class="visually-hidden"> of ${key.name}</span></a>
              <a class="button quiet" href="/keys/${key.id}/rename">Rename<span class="visually-hidden"> ${key.name}</span></a>
              <a class="button quiet" href="/keys/${key.id}/revoke">Revoke<span class="visually-hidden"> ${key.name}</span></a></div>`
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

function deprecationWarning(
  { id, deprecation }: (typeof DEPRECATED)[number],
  own: readonly KeyCalls[],
): Html | undefined {
  const calls = sum(own.filter(({ operation }) => operation === id))
  if (calls === 0) return undefined
  return html`<p class="notice warn">Called <code>${id}</code> ${counted(calls, 'time')} in the last ${CALLS_DAYS} days.
    It will be removed on ${longDay(deprecation!.sunset)}. <a href="${deprecation!.documentation}">Migration guide</a></p>`
}

function sum(counts: readonly KeyCalls[]): number {
  return counts.reduce((total, { calls }) => total + calls, 0)
}

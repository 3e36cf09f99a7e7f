// Reads an account's keys with their use, a page at a time, and renders them as a table.
import { redacted, stateOf } from '../accounts/api-keys.ts'
import { OPERATIONS } from '../contract/operations.ts'
import type { ApiKey, UsageCount } from '../store/account-store.ts'
import { html, type Html, isolated } from '../http/html.ts'
import { firstBucket, sparkline, SPANS } from './activity-chart.ts'
import { paging } from './paging.ts'
import { ago, count, counted, localDay, longDay } from './times.ts'
import type { MemberVisit } from './visit.ts'

const KEYS_SHOWN = 20
const WEEK = SPANS.week

const DEPRECATED = OPERATIONS.filter(({ deprecation }) => deprecation !== undefined)

export interface KeyPage {
  keys: readonly ApiKey[]
  calls: ReadonlyMap<string, readonly UsageCount[]>
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
    firstBucket(WEEK, now),
    WEEK.bucketMs,
  )
  const byKey = Map.groupBy(calls, ({ keyId }) => keyId)
  return { keys, calls: byKey, active, isFirst: after === undefined, hasMore: found.length > keys.length }
}

export function keyList(visit: MemberVisit, { keys, calls, active, isFirst, hasMore }: KeyPage): Html {
  const older = hasMore ? `/keys?${active ? '' : 'state=inactive&'}after=${keys.at(-1)!.id}` : undefined
  const label = active ? 'Pages' : 'Pages of keys no longer in use'
  return html`<table class="table keys">
    <caption class="visually-hidden">${active ? 'Your keys' : 'Keys no longer in use'}</caption>
    <thead><tr><th scope="col">Name</th><th scope="col">Created</th><th scope="col">Last used</th><th scope="col">Expires</th>
      <th scope="col" class="number">Calls, ${WEEK.words}</th><th scope="col"><span class="visually-hidden">Actions</span></th></tr></thead>
    <tbody>${keys.map((key) => keyRow(visit, key, calls.get(key.id) ?? []))}</tbody>
  </table>${paging({ newest: isFirst ? undefined : '/keys', older }, false, label)}`
}

function keyRow({ now }: MemberVisit, key: ApiKey, own: readonly UsageCount[]): Html {
  const isActive = stateOf(key, now) === 'active'
  const action = (path: string, words: string, danger = '') =>
    html`<a class="button quiet ${danger}" href="${path}">${words}<span class="visually-hidden"> ${key.name}</span></a>`
  return html`<tr id="${key.id}">
    <th scope="row">${isolated(key.name)} <code class="quiet-text">${redacted(key)}</code>
      ${isActive && DEPRECATED.map((operation) => deprecationWarning(operation, own))}</th>
    <td data-label="Created">${ago(key.createdAt, now)}</td>
    <td data-label="Last used">${key.lastUsedAt === undefined ? 'Never' : ago(key.lastUsedAt, now)}</td>
    <td data-label="Expires">${key.expiresAt === undefined ? 'Never' : localDay(key.expiresAt)}</td>
    <td class="number spark" data-label="Calls, ${WEEK.words}">${count(sum(own))}${own.length > 0 && sparkline(own, WEEK, now)}</td>
    <td class="key-actions">${
      isActive
        ? html`${action(`/activity?key=${key.id}`, 'Failures')} ${action(`/keys/${key.id}/rename`, 'Rename')}
            ${action(`/keys/${key.id}/revoke`, 'Revoke', 'danger-outline')}`
        : html`<span class="mark off">${key.revokedAt === undefined ? 'Expired' : html`Revoked ${ago(key.revokedAt, now)}`}</span>`
    }</td></tr>`
}

function deprecationWarning(
  { id, deprecation }: (typeof DEPRECATED)[number],
  own: readonly UsageCount[],
): Html | undefined {
  const calls = sum(own.filter(({ operation }) => operation === id))
  if (calls === 0) return undefined
  return html`<p class="key-warning">Called <code>${id}</code> ${counted(calls, 'time')} in the last ${WEEK.words}.
    It will be removed on ${longDay(deprecation!.sunset)}. <a href="${deprecation!.documentation}">Migration guide</a></p>`
}

function sum(counts: readonly UsageCount[]): number {
  return counts.reduce((total, { calls }) => total + calls, 0)
}

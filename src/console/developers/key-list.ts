// Reads the keys of an account, or of everyone, with their use, a page at a time, and renders them as a table.
import { redacted, stateOf } from '../../accounts/api-keys.ts'
import { longDate, OPERATIONS } from '../../contract/operations.ts'
import type { ApiKey, KeyCalls } from '../../store/account-store.ts'
import { html, type Html, isolated } from '../../http/html/html.ts'
import { withQuery } from '../animals/animal-addresses.ts'
import type { NameOf } from '../animals/animal-history.ts'
import { firstBucket, SPANS } from './activity-chart.ts'
import { paging } from '../every-page/paging.ts'
import { count, counted, localDay, minute } from '../every-page/times.ts'
import type { MemberVisit } from '../every-page/visit.ts'

/** The page of everyone's keys. */
export const ALL_KEYS = '/people/keys'
const KEYS_SHOWN = 20
const WEEK = SPANS.week

const DEPRECATED = OPERATIONS.filter(({ deprecation }) => deprecation !== undefined)

/** Another account's key is not found. */
export async function findOwnKey({ store, who }: MemberVisit, id: string): Promise<ApiKey | undefined> {
  const key = await store.accounts.keyById(id)
  return key?.accountId === who.account.id ? key : undefined
}

/** Reads the page of keys, of the visitor or of everyone, that follows the key `after` of the address, or the newest keys. */
export async function readKeys(visit: MemberVisit, active: boolean, whose: 'own' | 'all' = 'own') {
  const { store, who, now, query } = visit
  const accountId = whose === 'own' ? who.account.id : undefined
  const last = query.get('after') ?? ''
  const after = await (whose === 'own' ? findOwnKey(visit, last) : store.accounts.keyById(last))
  const found = await store.accounts.pageOfKeys({ accountId, active, now, after, limit: KEYS_SHOWN + 1 })
  const keys = found.slice(0, KEYS_SHOWN)
  const calls = await store.accounts.callsSince(
    keys.map(({ id }) => id),
    firstBucket(WEEK, now),
  )
  const byKey = Map.groupBy(calls, ({ keyId }) => keyId)
  return { keys, calls: byKey, active, isFirst: after === undefined, hasMore: found.length > keys.length }
}

type KeyPage = Awaited<ReturnType<typeof readKeys>>

/** With `ownerOf`, the table is one of everyone's keys, which a manager can revoke. */
export function keyList(visit: MemberVisit, page: KeyPage, ownerOf?: NameOf): Html {
  const { keys, calls, active, isFirst, hasMore } = page
  const list = ownerOf ? ALL_KEYS : '/keys'
  const state = active ? '' : 'inactive'
  const older = hasMore ? withQuery(list, { state, after: keys.at(-1)!.id }) : undefined
  return html`<table class="table keys">
    <caption class="visually-hidden">${ownerOf ? 'Active keys of everyone' : active ? 'Your keys' : 'Keys no longer in use'}</caption>
    <thead><tr><th scope="col">Name</th>${ownerOf && html`<th scope="col">Owner</th>`}<th scope="col">Created</th><th scope="col">Last used</th><th scope="col">Expires</th>
      <th scope="col" class="number">Calls, ${WEEK.words}</th><th scope="col"><span class="visually-hidden">Actions</span></th></tr></thead>
    <tbody>${keys.map((key) => keyRow(visit, key, calls.get(key.id) ?? [], ownerOf))}</tbody>
  </table>${paging({ newest: isFirst ? undefined : withQuery(list, { state }), older })}`
}

function keyRow({ now }: MemberVisit, key: ApiKey, own: readonly KeyCalls[], ownerOf?: NameOf): Html {
  const isActive = stateOf(key, now) === 'active'
  const action = (path: string, words: string, danger = '') =>
    html`<a class="button quiet ${danger}" href="${path}">${words}<span class="visually-hidden"> ${key.name}</span></a>`
  return html`<tr id="${key.id}">
    <th scope="row">${isolated(key.name)} <code class="quiet-text">${redacted(key)}</code>
      ${isActive && DEPRECATED.map((operation) => deprecationWarning(operation, own))}</th>
    ${ownerOf && html`<td data-label="Owner">${ownerOf(key.accountId)}</td>`}<td data-label="Created">${minute(key.createdAt)}</td>
    <td data-label="Last used">${key.lastUsedAt === undefined ? 'Never' : minute(key.lastUsedAt)}</td>
    <td data-label="Expires">${key.expiresAt === undefined ? 'Never' : localDay(key.expiresAt)}</td>
    <td class="number" data-label="Calls, ${WEEK.words}">${count(sumOf(own))}</td>
    <td class="key-actions">${
      isActive
        ? html`${!ownerOf && html`${action(`/activity?key=${key.id}`, 'Failures')} ${action(`/keys/${key.id}/rename`, 'Rename')}`}
            ${action(`${ownerOf ? ALL_KEYS : '/keys'}/${key.id}/revoke`, 'Revoke', 'danger-outline')}`
        : html`<span class="mark off">${key.revokedAt === undefined ? 'Expired' : html`Revoked ${minute(key.revokedAt)}`}</span>`
    }</td></tr>`
}

function deprecationWarning(
  { id, deprecation }: (typeof DEPRECATED)[number],
  own: readonly KeyCalls[],
): Html | undefined {
  const calls = sumOf(own.filter(({ operation }) => operation === id))
  if (calls === 0) return undefined
  return html`<p class="key-warning">Called <code>${id}</code> ${counted(calls, 'time')} in the last ${WEEK.words}.
    It will be removed on ${longDate(deprecation!.sunset)}. <a href="${deprecation!.documentation}">Migration guide</a></p>`
}

export function sumOf(counts: readonly KeyCalls[]): number {
  return counts.reduce((total, { calls }) => total + calls, 0)
}

// The active keys of everyone, for managers: whose each is, and when it was last used; revokes one.
import type { ApiKey } from '../../store/account-store.ts'
import { emptyState, html } from '../../http/html/html.ts'
import { readNames } from '../animals/animal-history.ts'
import { ALL_KEYS, keyList, readKeys } from './key-list.ts'
import { NOTICES, revokePage } from './keys.ts'
import { about } from '../every-page/form-page.ts'
import type { Problems } from '../every-page/forms.ts'
import { forManagers } from '../every-page/managers.ts'
import type { ConsoleRoute, HtmlPage, MemberVisit, Outcome } from '../every-page/visit.ts'

const withKey = about(({ store }, id) => store.accounts.keyById(id))

export const allKeysRoutes: readonly ConsoleRoute[] = [
  forManagers('GET', ALL_KEYS, allKeysPage),
  forManagers('GET', `${ALL_KEYS}/{id}/revoke`, withKey(confirmPage)),
  forManagers('POST', `${ALL_KEYS}/{id}/revoke`, withKey(revoke)),
]

async function allKeysPage(visit: MemberVisit): Promise<HtmlPage> {
  await visit.flushUsage()
  const page = await readKeys(visit, true, 'all')
  const owners = page.keys.map(({ accountId }) => accountId)
  return {
    title: 'All keys',
    section: 'people',
    body: html`<p class="back"><a href="/people">← People</a></p><h1>All keys</h1>
      ${visit.query.has('revoked') && NOTICES.revoked}
      <p class="lead">The active keys of everyone in this store.</p>
      ${page.isFirst && page.keys.length === 0 ? emptyState('No active key', 'People generate their own, under Keys.') : keyList(visit, page, await readNames(visit, owners))}`,
  }
}

async function confirmPage(visit: MemberVisit, key: ApiKey, problems: Problems = []): Promise<HtmlPage> {
  return revokePage(visit, key, (await readNames(visit, [key.accountId]))(key.accountId), problems)
}

async function revoke(visit: MemberVisit, key: ApiKey): Promise<Outcome> {
  const problem = await visit.accounts.revokeFor(visit.who.account, key)
  return problem === undefined ? { redirect: `${ALL_KEYS}?revoked=yes` } : confirmPage(visit, key, [problem])
}

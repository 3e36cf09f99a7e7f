// The page of the account: changes its password, shows its security log, and deletes it.
import type { AuditEvent } from '../../store/account-store.ts'
import { NoAccount, passwordFieldProblem } from '../../accounts/account-problems.ts'
import type { Via } from '../../accounts/accounts.ts'
import { PASSWORD_MIN_LENGTH } from '../../accounts/passwords.ts'
import { TooManyTries } from '../../accounts/throttle.ts'
import { entryOf } from '../../contract/text/entry-of.ts'
import { FieldProblem, Problem } from '../../contract/errors.ts'
import { int64FromText } from '../../contract/int64.ts'
import { FOLDED_MOST, type FoldedAction, type LogLine } from '../../store/security-log.ts'
import { formPage } from '../every-page/form-page.ts'
import { field, form, hidden, type Problems, problemSummary } from '../every-page/forms.ts'
import { html, type Html, isolated, isolatedNames } from '../../http/html/html.ts'
import { paging } from '../every-page/paging.ts'
import { tooManyTriesPage, TRY_AGAIN } from '../every-page/problem-pages.ts'
import { checkPassword, CURRENT_PASSWORD, nameField, NEW_PASSWORD, nextOf, openAs, toSignIn } from './sign-in.ts'
import { counted, localDay, minute } from '../every-page/times.ts'
import { type ConsoleRoute, forMembers, type MemberVisit, type Outcome, type HtmlPage } from '../every-page/visit.ts'

export const accountRoutes: readonly ConsoleRoute[] = [
  forMembers('GET', '/account', (visit) => accountPage(visit)),
  // A rejected form is shown at this address. If the visitor opens the address again, the account page has the form.
  forMembers('GET', '/account/password', () => ({ redirect: '/account' })),
  forMembers('POST', '/account/password', changePassword, {
    ifUnavailable: `The password may have been changed all the same. ${TRY_AGAIN} If you are asked to sign in, use the new password.`,
  }),
  forMembers('GET', '/account/name', (visit) => namePage(visit)),
  forMembers('POST', '/account/name', saveName, { keepsTyped: true }),
  forMembers('GET', '/account/delete', (visit) => deletePage(visit)),
  forMembers('POST', '/account/delete', deleteAccount, {
    ifUnavailable: `The account may have been deleted all the same. ${TRY_AGAIN} If you are asked to sign in, it was deleted.`,
  }),
]

async function accountPage(visit: MemberVisit, problems: Problems = []): Promise<HtmlPage> {
  const { store, query } = visit
  const { account } = visit.who
  const place = int64FromText(query.get('before') ?? '')
  const before = place === undefined || place < 0n ? undefined : Math.min(Number(place), Number.MAX_SAFE_INTEGER)
  const { lines, next } = await store.accounts.securityLog(account.id, before)
  return {
    title: 'Account',
    section: 'account',
    ...(problems.length > 0 && { status: 400 }),
    body: html`<h1>Account</h1>
      ${query.has('changed') && html`<p class="notice good" role="status">Password changed. All other sessions have ended.</p>`}
      ${problemSummary(problems)}
      <p class="lead">Signed in as <strong>${isolated(account.email)}</strong>. Account created on ${localDay(account.createdAt)}.</p>
      <p>${account.name ? html`Colleagues see you as <strong>${isolated(account.name)}</strong>.` : 'Colleagues see your email address.'}
        <a href="/account/name?next=%2Faccount">${account.name ? 'Change name' : 'Add your name'}</a></p>
      <div class="with-side">
        <section aria-labelledby="log">
          <h2 id="log">Security log</h2>
          <ol class="security-log">${lines.map(logItem)}</ol>
          ${paging({ newest: before === undefined ? undefined : '/account', older: next === undefined ? undefined : `/account?before=${next}` })}
        </section>
        <div class="side">
          <section class="panel" aria-labelledby="change">
            <h2 id="change">Change password</h2>
            ${form(visit, {
              action: '/account/password',
              submit: 'Change password',
              fields: html`
                ${field({ ...CURRENT_PASSWORD, label: 'Current password', problems })}
                ${field({ ...NEW_PASSWORD, label: 'New password', hint: `At least ${PASSWORD_MIN_LENGTH} characters.`, problems })}`,
            })}
          </section>
          <section class="panel" aria-labelledby="delete">
            <h2 id="delete">Delete account</h2>
            <p>Its keys stop working at once. The animals stay.</p>
            <p><a class="button danger-outline" href="/account/delete">Delete account…</a></p>
          </section>
        </div>
      </div>`,
  }
}

/** The look of an event: begun; changed; ended; gone for good, or refused. */
type Kind = 'good' | 'changed' | 'off' | 'bad'

const EVENT_WORDS: Record<
  Exclude<AuditEvent['action'], `${'pet' | 'category'}.${string}`>,
  { words: string; kind: Kind }
> = {
  'account.created': { words: 'Account created', kind: 'good' },
  'account.invited': { words: 'Invitation made', kind: 'good' },
  'account.link_made': { words: 'Password link made', kind: 'good' },
  'account.link_withdrawn': { words: 'Link withdrawn', kind: 'off' },
  'account.password_changed': { words: 'Password changed', kind: 'changed' },
  'account.removed': { words: 'Account deleted', kind: 'bad' },
  'account.renamed': { words: 'Name changed', kind: 'changed' },
  'account.role_changed': { words: 'Role changed', kind: 'changed' },
  'key.created': { words: 'Key generated', kind: 'good' },
  'key.renamed': { words: 'Key renamed', kind: 'changed' },
  'key.revoked': { words: 'Key revoked', kind: 'bad' },
  'session.started': { words: 'Signed in', kind: 'good' },
  'session.refused': { words: 'Sign-in refused', kind: 'bad' },
  'session.ended': { words: 'Signed out', kind: 'off' },
}

const VIA_WORDS: Record<Via, string> = { console: 'in the console', 'command line': 'on the command line' }

/** What is counted of the actions that the log folds. */
const FOLDED_WORDS: Record<FoldedAction, string> = {
  'session.refused': 'wrong password',
  'session.started': 'sign-in',
  'session.ended': 'sign-out',
}

function logItem({ action, at, via, subject, detail, count, since }: LogLine): Html {
  const known = entryOf(EVENT_WORDS, action) ?? { words: action, kind: 'off' }
  const item = (words: string, of: Html, times: Html) =>
    html`<li><span class="mark ${known.kind}">${words}</span> <span class="security-log-subject">${of}</span>
    <span class="quiet-text">${times}, ${entryOf(VIA_WORDS, via) ?? via}</span></li>`
  if (count === 1)
    return item(known.words, isolatedNames(detail === undefined ? subject : `${subject}: ${detail}`), minute(at))
  const words = `${counted(count, FOLDED_WORDS[action as FoldedAction])}${count === FOLDED_MOST ? ' or more' : ''}`
  return item(words, html`${isolated(subject)}, the newest`, html`between ${minute(since)} and ${minute(at)}`)
}

async function changePassword(visit: MemberVisit): Promise<Outcome> {
  const { accounts, who, form: typed, left } = visit
  const wrong = passwordFieldProblem(typed.get('password') ?? '') ?? []
  const refusal = await refuseUnlessPassword(visit, (problem) => accountPage(visit, [problem].concat(wrong)))
  if (refusal !== undefined) return refusal
  const changed = await accounts.changePassword(who.account, typed.get('password') ?? '', 'console', left)
  if (changed instanceof NoAccount) return toSignIn('/account')
  return changed instanceof Problem ? accountPage(visit, [changed]) : openAs(visit, changed, '/account?changed=yes')
}

/** Opens after the sign-in of who has no name, and before the page that was asked for. */
function namePage(visit: MemberVisit, problems: Problems = []): HtmlPage {
  const { email, name } = visit.who.account
  return formPage(visit, {
    title: 'Your name',
    section: 'account',
    problems,
    above: name === undefined && html`<p>Until you enter one, colleagues see ${isolated(email)}.</p>`,
    action: '/account/name',
    submit: 'Save name',
    cancel: nextOf(visit),
    cancelWords: name === undefined ? 'Later' : 'Cancel',
    fields: html`${hidden('next', nextOf(visit))}${nameField(visit, problems, name)}`,
  })
}

async function saveName(visit: MemberVisit): Promise<Outcome> {
  const { accounts, who, form: typed } = visit
  const problem = await accounts.setName(who.account, typed.get('name')?.trim() ?? '', 'console')
  return problem === undefined ? { redirect: nextOf(visit) } : namePage(visit, [problem])
}

function deletePage(visit: MemberVisit, problems: Problems = []): HtmlPage {
  return formPage(visit, {
    title: 'Delete account',
    heading: html`Delete this account?`,
    section: 'account',
    problems,
    above: html`<p>This deletes <strong>${isolated(visit.who.account.email)}</strong> and all its keys, for good. Programs that use the keys
      are refused from then on. The animals that they added stay in the store.</p>`,
    action: '/account/delete',
    submit: 'Delete account',
    danger: true,
    cancel: '/account',
    fields: field({ ...CURRENT_PASSWORD, label: 'Current password, to confirm', problems, focus: true }),
  })
}

async function deleteAccount(visit: MemberVisit): Promise<Outcome> {
  const refusal = await refuseUnlessPassword(visit, (problem) => deletePage(visit, [problem]))
  if (refusal !== undefined) return refusal
  const problem = await visit.accounts.remove(visit.who.account, 'console')
  if (problem !== undefined && !(problem instanceof NoAccount)) return deletePage(visit, [problem])
  return { redirect: '/sign-in?removed=yes', session: 'end' }
}

/** Checks the current password before a change that can't be undone: an open session on an unlocked laptop is not enough. */
async function refuseUnlessPassword(
  visit: MemberVisit,
  refuse: (problem: FieldProblem) => Outcome | Promise<Outcome>,
): Promise<Outcome | undefined> {
  const { who, form: typed } = visit
  const trier = { session: Buffer.from(who.session.tokenHash).toString('base64url') }
  const account = await checkPassword(visit, who.account.email, typed.get('current') ?? '', trier)
  if (account instanceof TooManyTries) return tooManyTriesPage(account)
  return account instanceof Problem ? refuse(new FieldProblem('current', account.message)) : undefined
}

// The page of a link that a manager has passed on: an invitation creates an account, the other kind sets a new password. Opening it
// changes nothing, so that the preview of a messenger does not use it up; sending its form does. The token is in the query, which
// is never logged.
import { roleWords } from '../../accounts/roles.ts'
import { isToken } from '../../accounts/sessions.ts'
import { TooManyTries } from '../../accounts/throttle.ts'
import { Problem } from '../../contract/errors.ts'
import type { Link } from '../../store/people-store.ts'
import { isFromOtherSite } from '../../http/call/call.ts'
import { html, isolated } from '../../http/html/html.ts'
import { formPage } from '../every-page/form-page.ts'
import { field, hidden, type Problems } from '../every-page/forms.ts'
import { problemPage, tooManyTriesPage } from '../every-page/problem-pages.ts'
import { createAndOpen, NEW_PASSWORD, openAs, SIGN_UP_HINT, signUpFields } from './sign-in.ts'
import { type ConsoleRoute, forAnyone, HOME, type HtmlPage, type Outcome, type Visit } from '../every-page/visit.ts'

export function linkAddress(token: string): string {
  return `/link?token=${token}`
}

export const linkRoutes: readonly ConsoleRoute[] = [
  forAnyone('GET', '/link', withLink(linkPage)),
  forAnyone('POST', '/link', withLink(useLink)),
]

const NO_LINK_PAGE = problemPage(
  404,
  'This link does not work',
  html`<p>It is incomplete, has expired, was withdrawn, or was used already: each works once. Ask a manager of this store for another.</p>`,
  html`Have you just used it? <a href="/sign-in">Sign in</a>.`,
)

const tokenIn = ({ form: sent, query }: Visit) => sent.get('token') ?? query.get('token') ?? ''

function withLink(handle: (visit: Visit, link: Link) => Outcome | Promise<Outcome>) {
  return async (visit: Visit): Promise<Outcome> => {
    const token = tokenIn(visit)
    const link = isToken(token) ? await visit.accounts.findLink(token) : undefined
    return link === undefined ? noLink(visit) : handle(visit, link)
  }
}

/** Only links that do not work count as tries, so that no one is kept from a right one; those that another site can cause do not. */
function noLink(visit: Visit): HtmlPage {
  if (tokenIn(visit) === '' || isFromOtherSite(visit.call)) return NO_LINK_PAGE
  const waitMs = visit.throttles.takeTry({ link: visit.address })
  if (waitMs <= 0) return NO_LINK_PAGE
  return tooManyTriesPage(new TooManyTries('There were too many tries from your address.', waitMs))
}

function linkPage(visit: Visit, { account, name, role }: Link, problems: Problems = []): HtmlPage {
  const title = account === undefined ? 'Create account' : 'Set a new password'
  const invited = html`You are invited to this store. ${role && `Role: ${roleWords({ role })}.`}`
  const isFor = account && html`For <strong>${isolated(account.email)}</strong>. All sessions of the account end.`
  return formPage(visit, {
    title,
    problems,
    above: html`<p>${isFor ?? invited}</p>`,
    action: '/link',
    submit: account === undefined ? 'Create account' : 'Set password',
    fields: html`${hidden('token', tokenIn(visit))}${
      account === undefined
        ? signUpFields(visit, problems, name)
        : field({ ...NEW_PASSWORD, label: 'New password', hint: SIGN_UP_HINT, problems, focus: true })
    }`,
  })
}

async function useLink(visit: Visit, link: Link): Promise<Outcome> {
  // Somebody else may have used it meanwhile, with the same name.
  const refuse = async (problems: Problems) => {
    const stillWorks = (await visit.accounts.findLink(tokenIn(visit))) !== undefined
    return stillWorks ? linkPage(visit, link, problems) : NO_LINK_PAGE
  }
  if (link.account === undefined) return createAndOpen(visit, refuse, link)
  const password = visit.form.get('password') ?? ''
  const changed = await visit.accounts.changePassword(link.account, password, 'console', visit.left, link)
  return changed instanceof Problem ? refuse([changed]) : openAs(visit, changed, HOME)
}

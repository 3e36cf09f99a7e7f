// The page of a link that a manager has passed on: an invitation creates an account, the other kind sets a new password. Opening it
// changes nothing, so that the preview of a messenger does not use it up; sending its form does. The token is in the query, which
// is never logged.
import { type Link, NO_LINK } from '../accounts/accounts.ts'
import { isToken } from '../accounts/sessions.ts'
import { TooManyTries } from '../accounts/throttle.ts'
import { Problem } from '../contract/errors.ts'
import { html, isolated } from '../http/html.ts'
import { field, form, hidden, type Problems, problemSummary } from './forms.ts'
import { tooManyTriesPage } from './problem-pages.ts'
import { createAndOpen, NEW_PASSWORD, openAs, SIGN_UP_HINT, signUpFields } from './sign-in.ts'
import { type ConsoleRoute, forAnyone, HOME, type HtmlPage, type Outcome, type Visit } from './visit.ts'

const ADDRESS = '/link'

export function linkAddress(token: string): string {
  return `${ADDRESS}?token=${token}`
}

export const linkRoutes: readonly ConsoleRoute[] = [
  forAnyone(
    'GET',
    ADDRESS,
    withLink((visit, link) => linkPage(visit, link)),
  ),
  forAnyone('POST', ADDRESS, withLink(useLink)),
]

const NO_LINK_PAGE: HtmlPage = {
  title: 'The link does not work',
  status: 404,
  secretAddress: true,
  body: html`<div class="narrow">
    <h1>This link does not work</h1>
    <p>It is incomplete, has expired, or was used already: each works once. Ask a manager of this store for another.</p>
    <p>Have you just used it? <a href="/sign-in">Sign in</a>.</p>
  </div>`,
}

const tokenIn = ({ form: sent, query }: Visit) => sent.get('token') ?? query.get('token') ?? ''

/** Looks up the link. Only links that do not work count as tries, so that an office's wrong passwords keep no one from a right one. */
function withLink(handle: (visit: Visit, link: Link) => Outcome | Promise<Outcome>) {
  return async (visit: Visit): Promise<Outcome> => {
    const token = tokenIn(visit)
    const link = isToken(token) ? await visit.accounts.findLink(token) : undefined
    if (link !== undefined) return handle(visit, link)
    const waitMs = await visit.throttles.takeTry({ link: visit.address })
    if (waitMs <= 0) return NO_LINK_PAGE
    const page = tooManyTriesPage(new TooManyTries('There were too many tries from your address.', waitMs))
    return { ...page, secretAddress: true }
  }
}

function linkPage(visit: Visit, { account }: Link, problems: Problems = []): HtmlPage {
  const title = account === undefined ? 'Create account' : 'Set a new password'
  return {
    title,
    secretAddress: true,
    ...(problems.length > 0 && { status: 400 }),
    body: html`<div class="narrow">
      <h1>${title}</h1>
      ${problemSummary(problems)}
      <p>${account === undefined ? 'You are invited to this store.' : html`For <strong>${isolated(account.email)}</strong>. All sessions of the account end.`}</p>
      ${form(visit, {
        action: ADDRESS,
        submit: account === undefined ? 'Create account' : 'Set password',
        fields: html`${hidden('token', tokenIn(visit))}${
          account === undefined
            ? signUpFields(visit, problems)
            : field({ ...NEW_PASSWORD, label: 'New password', hint: SIGN_UP_HINT, problems, focus: true })
        }`,
      })}
    </div>`,
  }
}

async function useLink(visit: Visit, link: Link): Promise<Outcome> {
  const refuse = (problem: Problem) =>
    problem === NO_LINK ? NO_LINK_PAGE : linkPage(visit, link, [problem as Problems[number]])
  if (link.account === undefined) return createAndOpen(visit, refuse, link)
  const password = visit.form.get('password') ?? ''
  const changed = await visit.accounts.changePassword(link.account, password, 'console', visit.left, link)
  return changed instanceof Problem ? refuse(changed) : openAs(visit, changed, HOME)
}

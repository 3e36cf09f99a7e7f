// Signs in, signs out, and creates an account, which also signs in. A refused sign-in reads the same and takes the same time
// whether or not the account exists.
import { EmailTaken, isTooLongToSignIn } from '../../accounts/account-problems.ts'
import { PASSWORD_MIN_LENGTH } from '../../accounts/passwords.ts'
import { TooManyTries, type Trier } from '../../accounts/throttle.ts'
import { FieldProblem, type InvalidFields, Problem } from '../../contract/errors.ts'
import type { Account } from '../../store/account-store.ts'
import type { Link } from '../../store/people-store.ts'
import { formPage } from '../every-page/form-page.ts'
import { field, hidden, type Problems, signAgain } from '../every-page/forms.ts'
import { html, type Html } from '../../http/html/html.ts'
import { problemPage, tooManyTriesPage, TRY_AGAIN } from '../every-page/problem-pages.ts'
import {
  type ConsoleRoute,
  forAnyone,
  HOME,
  type HtmlPage,
  type Outcome,
  safeNext,
  type Visit,
} from '../every-page/visit.ts'

export const signInRoutes: readonly ConsoleRoute[] = [
  forAnyone('GET', '/sign-in', (visit) => (visit.who ? { redirect: nextOf(visit) } : signInPage(visit))),
  forAnyone('POST', '/sign-in', signIn, { ifUnavailable: TRY_AGAIN }),
  forAnyone('GET', '/sign-up', (visit) => (visit.who ? { redirect: nextOf(visit) } : signUpPage(visit))),
  forAnyone('POST', '/sign-up', signUp),
  forAnyone('GET', '/sign-out', () => ({ redirect: '/' })),
  forAnyone('POST', '/sign-out', signOut, { ifUnavailable: TRY_AGAIN }),
]

export const CURRENT_PASSWORD = { name: 'current', type: 'password', autocomplete: 'current-password' } as const
export const NEW_PASSWORD = { name: 'password', type: 'password', autocomplete: 'new-password' } as const
export const SIGN_UP_HINT = `At least ${PASSWORD_MIN_LENGTH} characters; a few words work well. No other rules.`

/** Returns the page to open after the sign-in or sign-up, which the address or the form names. */
export function nextOf(visit: Visit): string {
  return safeNext(visit.form.get('next') ?? visit.query.get('next'), visit)
}

/** Returns the address of the other form, for the page that the address names. */
function otherForm(path: '/sign-in' | '/sign-up', visit: Visit): string {
  const next = safeNext(visit.query.get('next'), visit)
  return next === HOME ? path : `${path}?next=${encodeURIComponent(next)}`
}

function signInPage(visit: Visit, problems: Problems = []): HtmlPage {
  return formPage(visit, {
    title: 'Sign in',
    section: 'sign-in',
    problems,
    above: notice(visit, nextOf(visit)),
    action: '/sign-in',
    submit: 'Sign in',
    fields: html`
      ${hidden('next', nextOf(visit))}
      ${emailField(visit, problems)}
      ${field({ ...CURRENT_PASSWORD, name: 'password', label: 'Password', problems })}`,
    below: html`
      ${visit.signup === 'open' && html`<p class="aside">No account yet? <a href="${otherForm('/sign-up', visit)}">Create one</a>.</p>`}
      <p class="aside">Forgot your password? Ask a manager of this store for a link to set a new one.</p>`,
  })
}

function emailField(visit: Visit, problems: Problems, hint?: string): Html {
  const value = visit.form.get('email') ?? ''
  return field({
    name: 'email',
    label: 'Email address',
    type: 'email',
    autocomplete: 'username',
    value,
    problems,
    hint,
    focus: hint === undefined,
  })
}

function notice({ query }: Visit, next: string): Html | undefined {
  if (next.includes('typed=')) {
    return html`<p class="notice warn" role="status">Your session has ended, and nothing was saved yet. Sign in to go on where you were.</p>`
  }
  if (query.has('next') || next !== HOME) {
    return html`<p class="notice" role="status">You are not signed in, or your session has ended. Sign in to continue.</p>`
  }
  if (query.has('signed-out')) return html`<p class="notice good" role="status">You are signed out.</p>`
  if (query.has('removed')) return html`<p class="notice good" role="status">The account and its keys were deleted.</p>`
  return undefined
}

async function signIn(visit: Visit): Promise<Outcome> {
  const account = await checkPassword(visit, visit.form.get('email') ?? '', visit.form.get('password') ?? '')
  if (account instanceof TooManyTries) return tooManyTriesPage(account)
  if (account instanceof Problem)
    return signInPage(visit, [new FieldProblem('email', 'The email address or the password is wrong.')])
  return openAs(visit, account, nextOf(visit))
}

/** Checks the password of an account for every form that asks for it. Without `trier`, counts a try at sign-in. */
export async function checkPassword(
  { accounts, sessions, throttles, address, store, afterwards, left }: Visit,
  email: string,
  password: string,
  trier: Trier = { email, address },
): Promise<Account | Problem | TooManyTries> {
  const wrong = new Problem('The password is wrong.')
  if (isTooLongToSignIn(email, password)) return wrong
  const waitMs = throttles.takeTry(trier)
  if (waitMs > 0) return new TooManyTries('There were too many tries with a wrong password.', waitMs)
  const account = await accounts.signIn(email, password, left).catch((error: unknown) => {
    throttles.cancelTry(trier)
    throw error
  })
  if (account !== undefined) {
    throttles.passwordWasRight(trier)
    return account
  }
  // Written after the response: otherwise the response time would reveal that the account exists.
  afterwards.push(async () => {
    const refused = await store.accounts.accountByEmail(email)
    if (refused !== undefined) await sessions.noteRefusal(refused, address)
  })
  return wrong
}

/**
 * Starts a session and opens a page, if not its own after it has asked for the name of who has none; asks to sign in again if the password
 * was changed after it was verified.
 */
export async function openAs({ sessions, address, token }: Visit, account: Account, page: string): Promise<Outcome> {
  // Ends the session of the person who used this browser before.
  if (token !== undefined) await sessions.end(token, address)
  const session = await sessions.start(account, address)
  if (session === undefined) return toSignIn(page)
  const opened = signAgain(page, token, session)
  const isAsked = account.name === undefined && !page.startsWith('/account')
  return { redirect: isAsked ? `/account/name?next=${encodeURIComponent(opened)}` : opened, session }
}

/** Asks to sign in, and opens the page `next` after that. */
export function toSignIn(next: string): Outcome {
  return { redirect: `/sign-in?next=${encodeURIComponent(next)}` }
}

async function signOut({ token, sessions, address }: Visit): Promise<Outcome> {
  if (token !== undefined) await sessions.end(token, address)
  return { redirect: '/sign-in?signed-out=yes', session: 'end' }
}

function signUpPage(visit: Visit, problems: Problems = []): HtmlPage {
  if (visit.signup === 'closed') return CLOSED_PAGE
  return formPage(visit, {
    title: 'Create account',
    section: 'sign-up',
    problems,
    action: '/sign-up',
    submit: 'Create account',
    fields: html`${hidden('next', nextOf(visit))}${signUpFields(visit, problems)}`,
    below: html`<p class="aside">Already have an account? <a href="${otherForm('/sign-in', visit)}">Sign in</a>.</p>`,
  })
}

/** `invited` is the name that the manager has given. A password stays, unless it is what was wrong: the answer to a form is in no cache. */
export function signUpFields(visit: Visit, problems: Problems, invited = ''): Html {
  const isPasswordWrong = problems.some(({ field: name }) => name === NEW_PASSWORD.name)
  const value = isPasswordWrong ? '' : (visit.form.get(NEW_PASSWORD.name) ?? '')
  return html`${nameField(visit, problems, invited)}
    ${emailField(visit, problems, 'You sign in with it. No mail is sent.')}
    ${field({ ...NEW_PASSWORD, label: 'Password', hint: SIGN_UP_HINT, problems, value })}`
}

export function nameField(visit: Visit, problems: Problems, start = ''): Html {
  const value = visit.form.get('name') ?? start
  const hint = 'Colleagues see it beside what you do.'
  return field({ name: 'name', label: 'Your name', hint, autocomplete: 'name', value, problems, focus: true })
}

/** Names no command: a visitor who runs one elsewhere would create another store. */
const CLOSED_PAGE = problemPage(
  403,
  'Sign-up is closed',
  html`<p>Ask a manager of this store for an invitation.</p>`,
  html`Already have an account? <a href="/sign-in">Sign in</a>.`,
)

function signUp(visit: Visit): Outcome | Promise<Outcome> {
  return visit.signup === 'closed' ? CLOSED_PAGE : createAndOpen(visit, (problems) => signUpPage(visit, problems))
}

/** Creates the account that the form describes, and signs in to it. */
export async function createAndOpen(
  visit: Visit,
  refuse: (problems: Problems) => Outcome | Promise<Outcome>,
  link?: Link,
): Promise<Outcome> {
  const { accounts, throttles, left } = visit
  const trier = { signUp: visit.address }
  const waitMs = throttles.takeTry(trier)
  if (waitMs > 0) return tooManyTriesPage(new TooManyTries('Too many accounts were created from your address.', waitMs))
  const [name = '', email = ''] = ['name', 'email'].map((each) => visit.form.get(each)?.trim())
  const password = visit.form.get('password') ?? ''
  let created: Account | InvalidFields | undefined
  try {
    created = await accounts.create(email, password, 'console', { name, signal: left, isTrusted: visit.atHome, link })
  } finally {
    if (created === undefined || created instanceof Problem) throttles.cancelTry(trier)
  }
  if (!(created instanceof Problem)) return openAs(visit, created, nextOf(visit))
  // If the form was sent twice, the second request signs in to the account that the first one created.
  const isTaken = created.problems.some((problem) => problem instanceof EmailTaken)
  const existing = isTaken ? await checkPassword(visit, email, password) : created
  if (existing instanceof TooManyTries) return tooManyTriesPage(existing)
  if (existing instanceof Problem) return refuse(created.problems)
  return openAs(visit, existing, nextOf(visit))
}

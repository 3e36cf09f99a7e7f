// Signing in and out. A refusal sounds and takes the same whether or not there is such an account.
import { addressGroup } from '../accounts/throttle.ts'
import { foldEmail } from '../store/email.ts'
import type { Account } from '../store/store.ts'
import { field, form, hidden, type Problems, problemSummary } from './forms.ts'
import { html } from './html.ts'
import { tooManyTriesPage } from './problem-pages.ts'
import { type ConsoleRoute, forAnyone, type Outcome, type Page, safeNext, type Visit } from './visit.ts'

export const signInRoutes: readonly ConsoleRoute[] = [
  forAnyone('GET', '/sign-in', (visit) => (visit.who ? { redirect: safeNext(visit.query.get('next')) } : signInPage(visit))),
  forAnyone('POST', '/sign-in', signIn),
  forAnyone('GET', '/sign-out', () => ({ redirect: '/' })),
  forAnyone('POST', '/sign-out', signOut),
]

function signInPage(visit: Visit, problems: Problems = []): Page {
  const next = visit.form.get('next') ?? visit.query.get('next')
  return {
    title: 'Sign in',
    section: 'sign-in',
    ...(problems.length > 0 && { status: 400 }),
    body: html`<div class="narrow">
      <h1>Sign in</h1>
      ${notice(visit)}${problemSummary(problems)}
      ${form(visit, {
        action: '/sign-in',
        submit: 'Sign in',
        fields: html`
          ${next !== null && hidden('next', safeNext(next))}
          ${field({ name: 'email', label: 'Email address', type: 'email', autocomplete: 'username', value: visit.form.get('email') ?? '', problems })}
          ${field({ name: 'password', label: 'Password', type: 'password', autocomplete: 'current-password', problems })}`,
      })}
      <p class="aside">No account yet? <a href="/sign-up">Create one</a>.</p>
    </div>`,
  }
}

function notice({ query }: Visit) {
  if (query.has('next')) return html`<p class="notice" role="status">You are not signed in, or your session has ended. Sign in to go on.</p>`
  if (query.has('signed-out')) return html`<p class="notice good" role="status">You are signed out.</p>`
  if (query.has('removed')) return html`<p class="notice good" role="status">The account and its keys are gone.</p>`
  return undefined
}

async function signIn(visit: Visit): Promise<Outcome> {
  const result = await checkPassword(visit, visit.form.get('email') ?? '', visit.form.get('password') ?? '')
  if ('waitMs' in result) return tooManyTriesPage(result.waitMs, 'There were too many tries to sign in.')
  if (result.account === undefined) {
    return signInPage(visit, [{ field: 'email', message: 'The email address or the password is not right.' }])
  }
  // Whoever used this browser before is not carried along.
  if (visit.who !== undefined) await visit.sessions.end(visit.who, visit.request.ip)
  return { redirect: safeNext(visit.form.get('next')), session: await visit.sessions.start(result.account, visit.request.ip) }
}

/** Every place that takes a password asks here, so that all of them are throttled together. */
export async function checkPassword(
  { accounts, throttles, sessions, request, store, afterwards }: Visit,
  email: string,
  password: string,
): Promise<{ account: Account | undefined } | { waitMs: number }> {
  const [name, address] = [foldEmail(email), addressGroup(request.ip)]
  const waitMs = Math.max(throttles.signInByAddress.take(address), throttles.signInByAccount.take(name))
  if (waitMs > 0) return { waitMs }
  const account = await accounts.signIn(email, password)
  if (account !== undefined) {
    throttles.signInByAccount.forgive(name)
    return { account }
  }
  // Only after the answer is out: else its time would tell that there is such an account.
  afterwards.push(async () => {
    const refused = await store.accounts.accountByEmail(email)
    if (refused !== undefined) await sessions.noteRefusal(refused, request.ip)
  })
  return { account: undefined }
}

async function signOut(visit: Visit): Promise<Outcome> {
  if (visit.who !== undefined) await visit.sessions.end(visit.who, visit.request.ip)
  return { redirect: '/sign-in?signed-out=yes', session: 'end' }
}

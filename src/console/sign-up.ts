// Creating an account, which also signs in.
import { Refused } from '../contract/refused.ts'
import { PASSWORD_MIN_LENGTH } from '../accounts/passwords.ts'
import { TooManyTries } from '../accounts/throttle.ts'
import { field, form, type Problems, problemSummary } from './forms.ts'
import { html } from './html.ts'
import { tooManyTriesPage } from './problem-pages.ts'
import { checkCredentials, emailField, openAs } from './sign-in.ts'
import { type ConsoleRoute, forAnyone, type Outcome, type HtmlPage, type Visit } from './visit.ts'

export const signUpRoutes: readonly ConsoleRoute[] = [
  forAnyone('GET', '/sign-up', (visit) => (visit.who ? { redirect: '/keys' } : signUpPage(visit))),
  forAnyone('POST', '/sign-up', signUp),
]

function signUpPage(visit: Visit, problems: Problems = []): HtmlPage {
  if (visit.signup === 'closed') return closedPage
  return {
    title: 'Create account',
    section: 'sign-up',
    ...(problems.length > 0 && { status: 400 }),
    body: html`<div class="narrow">
      <h1>Create account</h1>
      ${problemSummary(problems)}
      ${form(visit, {
        action: '/sign-up',
        submit: 'Create account',
        fields: html`
          ${emailField(visit, problems, 'You sign in with it. No mail is sent.')}
          ${field({
            name: 'password',
            label: 'Password',
            hint: `At least ${PASSWORD_MIN_LENGTH} characters; a few words work well. No other rules.`,
            type: 'password',
            autocomplete: 'new-password',
            problems,
          })}`,
      })}
      <p class="aside">Already have an account? <a href="/sign-in">Sign in</a>.</p>
    </div>`,
  }
}

const CREATE_COMMAND = 'petstore account create you@example.com'

const closedPage: HtmlPage = {
  title: 'Create account',
  section: 'sign-up',
  status: 403,
  body: html`<div class="narrow">
    <h1>Sign-up is closed</h1>
    <p>Accounts are created by the operator of this service. Ask them to run this command:</p>
    <pre class="code" tabindex="0" aria-label="Command that creates an account"><code data-copy>${CREATE_COMMAND}</code></pre>
    <p>Already have an account? <a href="/sign-in">Sign in</a>.</p>
  </div>`,
}

async function signUp(visit: Visit): Promise<Outcome> {
  if (visit.signup === 'closed') return closedPage
  const { accounts, throttles, left } = visit
  const waitMs = await throttles.takeSignUp(visit.address)
  if (waitMs > 0) return tooManyTriesPage(new TooManyTries('Too many accounts were created from your address.', waitMs))
  const [email, password] = [visit.form.get('email')?.trim() ?? '', visit.form.get('password') ?? '']
  const created = await accounts.create(email, password, 'console', left)
  if (!(created instanceof Refused)) return openAs(visit, created, '/keys')
  // If the form was sent twice, the second request finds the account that the first one created.
  const existing = created.field === 'email' ? await checkCredentials(visit, email, password) : created
  if (existing instanceof Refused) return signUpPage(visit, [created])
  return openAs(visit, existing, '/keys')
}

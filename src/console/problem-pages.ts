// Error pages; each says what happened and how to continue.
import { TooManyHashes } from '../accounts/passwords.ts'
import type { TooManyTries } from '../accounts/throttle.ts'
import { RETRY_AFTER } from '../contract/limits.ts'
import type { Call } from '../http/call.ts'
import { type Log, logRepeated } from '../log.ts'
import { StoreUnavailable } from '../store/store.ts'
import { html, isolated } from '../http/html.ts'
import { ClientLeft, type ConsoleRoute, HOME, type HtmlPage, type Visit } from './visit.ts'

export function notFoundPage(visit: Visit): HtmlPage {
  return {
    status: 404,
    title: 'Page not found',
    body: html`<h1>Page not found</h1>
      <p>The address may be mistyped, or the page may have been removed.</p>
      <p>${
        visit.who
          ? html`<a class="button primary" href="${HOME}">Go to the animals</a>`
          : html`<a class="button primary" href="/">Go to the start page</a>`
      }</p>`,
  }
}

/** For a form that fails the CSRF check: the visitor has signed in or out since it was opened, or another site sent it. */
export function staleFormPage(visit: Visit): HtmlPage {
  return {
    status: 403,
    title: 'The form is out of date',
    body: html`<h1>This form is out of date</h1>
      <p>Nothing was changed. You may have signed in or out since you opened the page, or your browser does not keep cookies
      for this site.</p>
      <p>${
        visit.who
          ? html`You are signed in as <strong>${isolated(visit.who.account.email)}</strong>.
              <a href="${HOME}">Go to the animals</a>, or open the form again.`
          : html`<a href="/sign-in">Sign in</a>, then open the form again.`
      }</p>`,
  }
}

export function tooManyTriesPage({ message, waitMs }: TooManyTries): HtmlPage {
  const minutes = Math.ceil(waitMs / 60_000)
  return {
    status: 429,
    title: 'Too many tries',
    headers: { 'Retry-After': String(Math.ceil(waitMs / 1000)) },
    body: html`<h1>Too many tries</h1>
      <p>${message} Wait ${minutes === 1 ? 'a minute' : `${minutes} minutes`}, then try again.</p>
      <p><a href="/">Go to the start page</a></p>`,
  }
}

/** For a request whose Host header could be another site's, to a service that only its own machine can reach. */
export function misdirectedPage(url: string): HtmlPage {
  return {
    status: 421,
    title: 'Wrong address',
    body: html`<h1>This console has another address</h1>
      <p>On its own machine it answers only to IP addresses and <code>localhost</code>, so that another site cannot pose as it.
      Open <code>${url}/</code> instead.</p>
      <p>To serve it under a name, set <code>PETSTORE_BASE_URL</code> or <code>PETSTORE_STAGING_BASE_URL</code>.</p>`,
  }
}

/** Logs an error and returns the page that reports it. `tried` is the route whose function has thrown it, if one was called. */
export function errorPage(error: unknown, { id }: Call, log: Log, tried?: ConsoleRoute): HtmlPage {
  if (error instanceof ClientLeft) return badRequestPage(400, error.message)
  if (error instanceof TooManyHashes) return unavailablePage('Too busy', 'Too many people are signing in', UNCHANGED)
  if (error instanceof StoreUnavailable) {
    logRepeated(log, 'error', { requestId: id, reason: error.message }, 'the database is unavailable')
    const state = tried?.method === 'POST' ? (tried.ifUnavailable ?? MAYBE_CHANGED) : UNCHANGED
    return unavailablePage('Database unavailable', 'The database is unavailable', state, id)
  }
  log.error({ requestId: id, error }, 'the console failed')
  return {
    status: 500,
    title: 'Something went wrong',
    body: html`<h1>Something went wrong</h1>
      <p>This is an error of the service, not yours. If it happens again, report it with the request id.</p>
      <p>Request id: <code>${id}</code></p>
      <p><a href="/">Go to the start page</a></p>`,
  }
}

export const TRY_AGAIN = 'Go back and try again in a few seconds.'

const UNCHANGED = `Nothing was changed. ${TRY_AGAIN}`

/** A write may have taken effect although the database did not answer (`StoreUnavailable`). */
const MAYBE_CHANGED =
  'The form may have been saved all the same. Go back and send it again in a few seconds: it creates nothing twice.'

function unavailablePage(title: string, heading: string, state: string, requestId?: string): HtmlPage {
  return {
    status: 503,
    title,
    headers: { 'Retry-After': String(RETRY_AFTER.unavailable) },
    body: html`<h1>${heading}</h1>
      <p>${state}</p>
      ${requestId && html`<p>Request id: <code>${requestId}</code></p>`}
      <p><a href="/">Go to the start page</a></p>`,
  }
}

export function badRequestPage(status: number, message: string): HtmlPage {
  return {
    status,
    title: 'Bad request',
    body: html`<h1>The request could not be processed</h1>
      <p>${message}</p>
      <p><a href="/">Go to the start page</a></p>`,
  }
}

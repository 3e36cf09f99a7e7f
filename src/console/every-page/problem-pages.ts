// Error pages; each says what happened and how to continue.
import { TooManyHashes } from '../../accounts/passwords.ts'
import type { TooManyTries } from '../../accounts/throttle.ts'
import { RETRY_AFTER } from '../../contract/limits.ts'
import type { Call } from '../../http/call/call.ts'
import { ClientLeft } from '../../http/connections/client-left.ts'
import { type Log, logRepeated } from '../../log.ts'
import { nameOf } from '../../store/people-store.ts'
import { StoreUnavailable } from '../../store/store.ts'
import { html, type Html, isolated } from '../../http/html/html.ts'
import { TooManyReadings } from './readings.ts'
import { type ConsoleRoute, HOME, type HtmlPage, type Visit } from './visit.ts'

const TO_START = html`<a href="/">Go to the start page</a>`

/** `way` leads on. */
export function problemPage(status: number, title: string, body: Html, way = TO_START): HtmlPage {
  return { status, title, body: html`<h1>${title}</h1>${body}<p>${way}</p>` }
}

export function notFoundPage({ who }: Visit): HtmlPage {
  const way = who
    ? html`<a class="button primary" href="${HOME}">Go to the animals</a>`
    : html`<a class="button primary" href="/">Go to the start page</a>`
  const body = html`<p>The address may be mistyped, or the page may have been removed.</p>`
  return problemPage(404, 'Page not found', body, way)
}

/** For a form that fails the CSRF check: the visitor has signed in or out since it was opened, or another site sent it. */
export function staleFormPage({ who }: Visit): HtmlPage {
  const body = html`<p>Nothing was changed. You may have signed in or out since you opened the page, or your browser does not keep
    cookies for this site.</p>`
  const way = who
    ? html`You are signed in as <strong>${isolated(nameOf(who.account))}</strong>.
        <a href="${HOME}">Go to the animals</a>, or open the form again.`
    : html`<a href="/sign-in">Sign in</a>, then open the form again.`
  return problemPage(403, 'This form is out of date', body, way)
}

export function tooManyTriesPage({ message, waitMs }: TooManyTries): HtmlPage {
  const minutes = Math.ceil(waitMs / 60_000)
  const body = html`<p>${message} Wait ${minutes === 1 ? 'a minute' : `${minutes} minutes`}, then try again.</p>`
  const headers = { 'Retry-After': String(Math.ceil(waitMs / 1000)) }
  return { ...problemPage(429, 'Too many tries', body), headers }
}

function tooManyReadingsPage({ message }: TooManyReadings): HtmlPage {
  const body = html`<p>${message} Nothing was changed. Try again in a moment.</p>`
  const headers = { 'Retry-After': String(RETRY_AFTER.reading) }
  return { ...problemPage(429, 'Too much at a time', body), headers }
}

/**
 * Returns the page that reports an error; throws one that is a bug again. `tried` is the route whose function has thrown it, if one was
 * called.
 */
export function errorPage(error: unknown, { id }: Call, log: Log, tried?: ConsoleRoute): HtmlPage {
  if (error instanceof ClientLeft) return badRequestPage(400, error.message)
  if (error instanceof TooManyReadings) return tooManyReadingsPage(error)
  if (error instanceof TooManyHashes) return unavailablePage('Too many people are signing in', UNCHANGED)
  if (error instanceof StoreUnavailable) {
    logRepeated(log, 'error', { requestId: id, reason: error.message }, 'the database is unavailable')
    const state = tried?.method === 'POST' ? (tried.ifUnavailable ?? MAYBE_CHANGED) : UNCHANGED
    return unavailablePage('The database is unavailable', state, id)
  }
  throw error
}

export const TRY_AGAIN = 'Go back and try again in a few seconds.'

const UNCHANGED = `Nothing was changed. ${TRY_AGAIN}`

/** A write may have taken effect although the database did not answer (`StoreUnavailable`). */
const MAYBE_CHANGED =
  'The form may have been saved all the same. Go back and send it again in a few seconds: it creates nothing twice.'

function unavailablePage(title: string, state: string, requestId?: string): HtmlPage {
  const headers = { 'Retry-After': String(RETRY_AFTER.unavailable) }
  const request = requestId && html`<p>Request id: <code>${requestId}</code></p>`
  return { ...problemPage(503, title, html`<p>${state}</p>${request}`), headers }
}

export function badRequestPage(status: number, message: string): HtmlPage {
  return problemPage(status, 'The request could not be processed', html`<p>${message}</p>`)
}

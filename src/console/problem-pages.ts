// Error pages; each says what happened and how to continue.
import type { TooManyTries } from '../accounts/throttle.ts'
import { RETRY_AFTER } from '../contract/limits.ts'
import type { Call } from '../http/call.ts'
import { html, isolated } from './html.ts'
import type { HtmlPage, Visit } from './visit.ts'

export function notFoundPage(visit: Visit): HtmlPage {
  return {
    status: 404,
    title: 'Page not found',
    body: html`<h1>Page not found</h1>
      <p>The address may be mistyped, or the page may have been removed.</p>
      <p>${
        visit.who
          ? html`<a class="button primary" href="/keys">Go to your keys</a>`
          : html`<a class="button primary" href="/">Go to the start page</a>`
      }</p>`,
  }
}

/** For a form without a valid CSRF token: it was open too long, or another site sent it. */
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
              <a href="/keys">Go to your keys</a>, or open the form again.`
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

/** For a request to a service at home under a name that could be another site's. */
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

export function busyPage(): HtmlPage {
  return {
    status: 503,
    title: 'Too busy',
    headers: { 'Retry-After': String(RETRY_AFTER.unavailable) },
    body: html`<h1>Too many people are signing in</h1>
      <p>Nothing was changed. Go back and try again in a few seconds.</p>
      <p><a href="/">Go to the start page</a></p>`,
  }
}

export function serverErrorPage({ id }: Call, status: number): HtmlPage {
  const unavailable = status === 503
  return {
    status,
    title: unavailable ? 'Database unavailable' : 'Something went wrong',
    ...(unavailable && { headers: { 'Retry-After': String(RETRY_AFTER.unavailable) } }),
    body: html`<h1>${unavailable ? 'The database is unavailable' : 'Something went wrong'}</h1>
      <p>${
        unavailable
          ? 'Nothing was changed. Go back and try again in a few seconds.'
          : 'This is an error of the service, not yours. If it happens again, report it with the request id.'
      }</p>
      <p>Request id: <code>${id}</code></p>
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

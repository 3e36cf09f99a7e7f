// Pages for when something is not as it should be; each says what happened and where to go on.
import type { FastifyRequest } from 'fastify'
import type { TooManyTries } from '../accounts/throttle.ts'
import { html } from './html.ts'
import type { HtmlPage, Visit } from './visit.ts'

export function notFoundPage(visit: Visit): HtmlPage {
  return {
    status: 404,
    title: 'Nothing here',
    body: html`<h1>There is nothing at this address</h1>
      <p>It may have been mistyped, or what it showed may be gone.</p>
      <p>${visit.who ? html`<a class="button primary" href="/keys">Go to your keys</a>` : html`<a class="button primary" href="/">Go to the start</a>`}</p>`,
  }
}

/** A form that our page did not make for this visitor: it was open too long, or it came from somewhere else. */
export function staleFormPage(visit: Visit): HtmlPage {
  return {
    status: 403,
    title: 'The form is out of date',
    body: html`<h1>This form is out of date</h1>
      <p>Nothing was changed. You may have signed in or out since the page was opened, or the browser keeps no cookies
      for this site.</p>
      <p>${
        visit.who
          ? html`You are signed in as <strong><bdi>${visit.who.account.email}</bdi></strong>. <a href="/keys">Go to your keys</a>, or open the form again.`
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
      <p><a href="/">Go to the start</a></p>`,
  }
}

export function faultPage(request: FastifyRequest, status: number): HtmlPage {
  const away = status === 503
  return {
    status,
    title: away ? 'Not available' : 'Something went wrong',
    ...(away && { headers: { 'Retry-After': '2' } }),
    body: html`<h1>${away ? 'The database is not available at the moment' : 'Something went wrong'}</h1>
      <p>${
        away
          ? 'Nothing was changed. Go back and try again in a few seconds.'
          : 'This is a fault of the service, not yours. If it stays, report it with the request id.'
      }</p>
      <p>Request id: <code>${request.id}</code></p>
      <p><a href="/">Go to the start</a></p>`,
  }
}

export function badRequestPage(status: number, message: string): HtmlPage {
  return {
    status,
    title: 'The request cannot be used',
    body: html`<h1>The request cannot be used</h1>
      <p>${message}</p>
      <p><a href="/">Go to the start</a></p>`,
  }
}

// The content of answers, with the headers that describe it: text, JSON, pages, and refusals as an Error body or a page.
import { errorBody, ERRORS, helpLink, type Refusal } from '../../contract/errors.ts'
import type { Answer, Bytes, Call } from '../call/call.ts'
import { html, type Html } from '../html/html.ts'
import { SECURITY_HEADERS } from '../html/security-headers.ts'

export function contentOf(text: string, type: string): { headers: string[]; body: Bytes } {
  const length = Buffer.byteLength(text)
  const body = (length === text.length ? text : Buffer.from(text).toString('latin1')) as Bytes
  return { headers: ['Content-Type', type, 'Content-Length', String(length)], body }
}

export function htmlContent({ text }: Html): { headers: string[]; body: Bytes } {
  return contentOf(text, 'text/html; charset=utf-8')
}

export function jsonContent(json: string): { headers: string[]; body: Bytes } {
  return contentOf(json, 'application/json')
}

/** Every answer outside the API has it, not only pages: a browser shows any answer to the address of a link. */
export const REFERRER_POLICY = ['Referrer-Policy', SECURITY_HEADERS['Referrer-Policy']]

type RefusalAnswer = Answer & { body: Bytes }

/**
 * Creates a function that renders refusals, each with a link to the documentation of its code; `root` is the public address, if
 * configured. A refusal that is the same object each time, such as for a missing key, is rendered once.
 */
export function createRefusalAnswer(root = '', more: readonly string[] = []): (refusal: Refusal) => RefusalAnswer {
  const rendered = new WeakMap<Refusal, RefusalAnswer>()
  return (refusal) => {
    const known = rendered.get(refusal)
    if (known !== undefined) return known
    const { code, message, headers } = refusal
    const content = jsonContent(JSON.stringify(errorBody(code, message)))
    const answer = {
      status: ERRORS[code].status,
      headers: [...content.headers, ...headers, 'Link', helpLink(code, root), ...more],
      body: content.body,
    }
    rendered.set(refusal, answer)
    return answer
  }
}

/** Renders relative links, for answers that are sent without a configuration. The request may have been for a page. */
export const refusalAnswer = createRefusalAnswer('', REFERRER_POLICY)

/** Returns a refusal as a page. The console has added the security headers already if it has refused the request. */
export function pageOf(refusal: Refusal, { id, answerHeaders }: Pick<Call, 'id' | 'answerHeaders'>): RefusalAnswer {
  const { headers, body } = htmlContent(renderErrorPage(refusal, id))
  const security = answerHeaders === undefined ? Object.entries(SECURITY_HEADERS).flat() : []
  return { status: ERRORS[refusal.code].status, headers: [...headers, ...refusal.headers, ...security], body }
}

/** For people outside the API. Needs neither the console nor the database: the console may not be loaded yet, or be what failed. */
function renderErrorPage(refusal: Refusal, requestId: string): Html {
  const [title, advice] = wordsFor(refusal)
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · Petstore</title>
<link rel="icon" href="/assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/assets/console.css">
</head>
<body>
<header><div class="top"><a class="brand" href="/">Petstore</a></div></header>
<main class="page">
<h1>${title}</h1>
<p>${advice}</p>
<p>Request id: <code>${requestId}</code></p>
<p><a href="/">Go to the start page</a></p>
</main>
</body>
</html>
`
}

/** The messages of 5xx are for programs; those of 4xx name what came and what was expected. */
function wordsFor({ code, message }: Refusal): [title: string, advice: string] {
  const { status } = ERRORS[code]
  if (status < 500) return ['The request could not be processed', message]
  if (status === 503)
    return [
      'The service is unavailable',
      'Try again in a few seconds. If you sent a form, look first whether it was saved.',
    ]
  const advice = 'This is an error of the service, not yours. If it happens again, report it with the request id.'
  return ['Something went wrong', advice]
}

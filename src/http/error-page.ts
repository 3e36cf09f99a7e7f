// Renders a refusal as a page, for people who meet it outside the API. It needs neither the console nor the database: the console may
// not be loaded yet, or be what failed.
import { ERRORS, type Refusal } from '../contract/errors.ts'
import { html, type Html } from './html.ts'

export function renderErrorPage(refusal: Refusal, requestId: string): Html {
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

// The start page: says what the service is, with one door for people who keep animals and one for developers, and its base
// address.
import { BASE_PATH, EXAMPLE_PET, type Operation, OPERATIONS } from '../../contract/operations.ts'
import { KEY_PREFIX } from '../../accounts/api-keys.ts'
import { html, type Html } from '../../http/html/html.ts'
import { baseAddress, type ConsoleRoute, forAnyone, HOME, type HtmlPage, type Visit } from '../every-page/visit.ts'

export const welcomeRoutes: readonly ConsoleRoute[] = [forAnyone('GET', '/', welcomePage)]

const SAMPLE_ANSWER = JSON.stringify([EXAMPLE_PET], null, 1)

const STAGING_AT_HOME = html`<p id="staging" class="panel"><strong>A new store is staging</strong>: a place to try things, with keys that only it accepts.
  For a real store, create your account here, since production has no open sign-up. Then start the service with
  <code>PETSTORE_ENVIRONMENT=production</code>. If the store has keys or animals by then, the start says how to go on.</p>`

function welcomePage(visit: Visit): HtmlPage {
  const base = baseAddress(visit)
  const key = `${KEY_PREFIX[visit.config.environment]}…`
  return {
    title: 'Welcome',
    body: html`<section class="hero">
      <div><h1>A store’s animals, in one place</h1>
      <div class="doors">
        <p><strong>You keep animals?</strong> Find them, add them, reserve and sell them here in the browser.</p>
        <a class="button primary" href="${HOME}">Open the animals</a>
        <p><strong>You write programs?</strong> List the animals, add one, look one up over HTTP, exact and durable.</p>
        <a class="button" href="/keys">Get a key</a>
      </div></div>
      <div class="sample">
        <pre class="code" tabindex="0" aria-label="Example: list the animals"><code>curl -H "Authorization: Bearer ${key}" \\
  "${base}/pets?status=available"</code></pre>
        <pre class="code answer" tabindex="0" aria-label="The response"><code>${SAMPLE_ANSWER}</code></pre>
      </div>
    </section>
    ${visit.atHome && visit.config.environment === 'staging' && STAGING_AT_HOME}
    <section aria-labelledby="operations">
      <h2 id="operations">The interface</h2>
      <p>Base address: <code data-copy>${base}</code></p>
      <ul class="plain-list">
        ${OPERATIONS.map(operationLine)}
      </ul>
      <p>The <a href="/docs">reference</a> has every field, and lets you try each operation. Each
      <a href="/docs/errors">error code</a> has its cause and its fix.</p>
    </section>`,
  }
}

function operationLine({ method, path, summary, deprecation }: Operation): Html {
  const note = deprecation && html` (<a href="${deprecation.documentation}">deprecated</a>)`
  return html`<li><code>${method} ${BASE_PATH}${path}</code> ${summary}${note}</li>`
}

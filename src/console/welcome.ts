// The start page: says what the service is, with one door for people who keep animals and one for developers, and its base
// address and state.
import { BASE_PATH, EXAMPLE_PET, type Operation, OPERATIONS, VERSION } from '../contract/operations.ts'
import { KEY_PREFIX } from '../accounts/api-keys.ts'
import { html, type Html } from '../http/html.ts'
import { baseAddress, type ConsoleRoute, forAnyone, HOME, type HtmlPage, type Visit } from './visit.ts'

export const welcomeRoutes: readonly ConsoleRoute[] = [forAnyone('GET', '/', welcomePage)]

const SAMPLE_ANSWER = JSON.stringify([EXAMPLE_PET], null, 1)

const READY = html`<span class="mark good">Ready</span>`
const DATABASE_UNAVAILABLE = html`<span class="mark bad">Database unavailable</span>`

async function welcomePage(visit: Visit): Promise<HtmlPage> {
  const ready = await visit.store.ping().then(
    () => true,
    () => false,
  )
  const base = baseAddress(visit)
  const key = `${KEY_PREFIX[visit.config.environment]}…`
  return {
    title: 'Welcome',
    body: html`<section class="hero">
      <div><h1>A store’s animals, in one place</h1>
      <div class="doors">
        <p><strong>You keep animals?</strong> Find them, add them, reserve and sell them here in the browser.</p>
        <a class="button primary" href="${HOME}">Open the animals</a>
        <p><strong>You write programs?</strong> List the animals, add one, look one up: three operations over HTTP, exact and durable.</p>
        <a class="button" href="/keys">Get a key</a>
      </div></div>
      <div class="sample">
        <pre class="code" tabindex="0" aria-label="Example: list the animals"><code>curl -H "Authorization: Bearer ${key}" \\
  "${base}/pets?status=available"</code></pre>
        <pre class="code answer" tabindex="0" aria-label="The response"><code>${SAMPLE_ANSWER}</code></pre>
      </div>
    </section>
    <section class="panel" aria-labelledby="here">
      <h2 id="here" class="visually-hidden">This deployment</h2>
      <dl class="facts">
        <div class="grow"><dt>Base address</dt><dd><code data-copy>${base}</code></dd></div>
        <div><dt>State</dt><dd>${ready ? READY : DATABASE_UNAVAILABLE}</dd></div>
        <div><dt>Environment</dt><dd>${visit.config.environment === 'staging' ? 'Staging' : 'Production'}</dd></div>
        <div><dt>Version</dt><dd>${VERSION}</dd></div>
      </dl>
    </section>
    <section aria-labelledby="steps">
      <h2 id="steps">Get started</h2>
      <ol class="steps">
        <li><h3>Create an account</h3><p>${
          visit.signup === 'open'
            ? 'All you need is an email address and a password.'
            : 'Accounts are created by the operator of this service.'
        }</p></li>
        <li><h3>Generate a key</h3><p>It starts with <code>${key}</code> and is shown once.</p></li>
        <li><h3>Call the API</h3><p>Send the key with every request. Responses are plain JSON.</p></li>
      </ol>
    </section>
    <section aria-labelledby="operations">
      <h2 id="operations">The interface</h2>
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

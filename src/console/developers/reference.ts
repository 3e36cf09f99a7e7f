// The reference: Scalar with the OpenAPI document, every error code, and the deprecations with their migration guides.
import { ERRORS } from '../../contract/errors.ts'
import { BASE_PATH, type Operation, OPERATIONS } from '../../contract/operations.ts'
import { STATUS_CODES } from '../../http/connections/node-http.ts'
import { assetAddress } from '../every-page/assets.ts'
import { html, type Html } from '../../http/html/html.ts'
import { referencePolicy } from '../../http/html/security-headers.ts'
import { day } from '../every-page/times.ts'
import { baseAddress, type ConsoleRoute, forAnyone, type HtmlPage, type Visit } from '../every-page/visit.ts'

export const referenceRoutes: readonly ConsoleRoute[] = [
  forAnyone('GET', '/docs', referencePage),
  forAnyone('GET', '/docs/errors', () => errorCodesPage),
  forAnyone('GET', '/docs/deprecations', deprecationsPage),
]

const TABS = { '/docs': 'Operations', '/docs/errors': 'Error codes', '/docs/deprecations': 'Deprecations' } as const

function referenceTabs(current: keyof typeof TABS): Html {
  return html`<nav aria-label="Reference"><ul class="switch">${Object.entries(TABS).map(
    ([address, words]) =>
      html`<li><a href="${address}" ${address === current && html`aria-current="page"`}>${words}</a></li>`,
  )}</ul></nav>`
}

/** Scalar fills `#reference`. Its inline styles need another Content-Security-Policy. */
function referencePage({ config: { baseUrl, stagingBaseUrl } }: Visit): HtmlPage {
  return {
    title: 'API reference',
    section: 'reference',
    wide: true,
    headers: { 'Content-Security-Policy': referencePolicy([baseUrl, stagingBaseUrl]) },
    head: html`<link rel="stylesheet" href="${assetAddress('reference.css')}">
<script src="${assetAddress('scalar.js')}" defer></script>
<script src="${assetAddress('reference.js')}" defer></script>
`,
    body: html`${referenceTabs('/docs')}
      <div id="content" tabindex="-1"><div id="reference"><main class="page"><h1>API reference</h1>
        <p>The interactive reference needs JavaScript. Without it, see the <a href="/openapi.json">OpenAPI document</a>,
        the <a href="/docs/errors">error codes</a> and the <a href="/docs/deprecations">deprecations</a>.</p>
      </main></div></div>`,
  }
}

const byStatus = Map.groupBy(Object.entries(ERRORS), ([, { status }]) => status)

const errorCodesPage: HtmlPage = {
  title: 'Error codes',
  section: 'reference',
  body: html`<div class="page-head"><h1>Error codes</h1>${referenceTabs('/docs/errors')}</div>
    <p class="lead">Every error has the same body: <code>code</code>, <code>message</code> and <code>status</code>. The code is
    for programs and never changes; the message is for people and says what was sent and what to do. The
    <code>Request-Id</code> header of the response identifies the request.</p>
    ${[...byStatus].map(
      ([status, errors]) => html`<section aria-labelledby="status-${status}">
        <h2 id="status-${status}" class="status-head">${status} ${STATUS_CODES[status]}</h2>
        <ul class="cards">${errors.map(
          ([code, { cause, fix }]) => html`<li class="card error-card" id="${code}">
            <h3><a href="#${code}"><code>${code}</code></a></h3><p>${cause}</p><p><strong>Fix:</strong> ${fix}</p></li>`,
        )}</ul></section>`,
    )}`,
}

/** The `Link` header with rel="deprecation" leads here. */
function deprecationsPage(visit: Visit): HtmlPage {
  const deprecated = OPERATIONS.filter(({ deprecation }) => deprecation !== undefined)
  return {
    title: 'Deprecations',
    section: 'reference',
    body: html`<div class="page-head"><h1>Deprecations</h1>${referenceTabs('/docs/deprecations')}</div>
      <p class="lead">A deprecated operation works unchanged until its removal. Its responses carry
      <code>Deprecation</code>, <code>Sunset</code> and <code>Link</code> headers, and the <a href="/keys">keys page</a> shows
      which of your keys still call it.</p>
      ${deprecated.map((operation) => deprecationSection(visit, operation))}`,
  }
}

function deprecationSection(visit: Visit, { id, method, path, deprecation }: Operation): Html {
  const { since, sunset, successor, guide } = deprecation!
  const example = `curl -H "Authorization: Bearer $API_KEY" \\\n  "${baseAddress(visit)}${successor}"`
  return html`<section class="panel" id="${id}" aria-labelledby="${id}-title">
    <h2 id="${id}-title"><code>${method} ${BASE_PATH}${path}</code></h2>
    <dl class="facts">
      <div><dt>Operation</dt><dd><code>${id}</code></dd></div>
      <div><dt>Deprecated since</dt><dd>${day(since)}</dd></div>
      <div><dt>Removed on</dt><dd>${day(sunset)}, 00:00 UTC</dd></div>
      <div class="grow"><dt>Use instead</dt><dd><code>GET ${BASE_PATH}${successor}</code></dd></div>
    </dl>
    <h3>Migration guide</h3>
    <p>${guide}</p>
    <pre class="code" tabindex="0" aria-label="Example: call the successor of ${id}"><code data-copy>${example}</code></pre>
    <p>From that date on, this operation answers 410 with the code
    <a href="/docs/errors#operation_removed"><code>operation_removed</code></a>.</p>
  </section>`
}

// Deprecated operations: since when, until when, and a migration guide. This is where rel="deprecation" leads.
import { BASE_PATH, type Operation, OPERATIONS } from '../contract/operations.ts'
import { html, type Html } from './html.ts'
import { referenceTabs } from './reference-tabs.ts'
import { day } from './times.ts'
import { baseAddress, type ConsoleRoute, forAnyone, type HtmlPage, type Visit } from './visit.ts'

export const deprecationRoutes: readonly ConsoleRoute[] = [forAnyone('GET', '/docs/deprecations', deprecationsPage)]

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

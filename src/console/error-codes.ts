// Every error code with its cause and its fix, each with an anchor to link to.
import { ERRORS } from '../contract/errors.ts'
import { STATUS_CODES } from '../node-http.ts'
import { html } from './html.ts'
import { referenceTabs } from './reference-tabs.ts'
import { type ConsoleRoute, forAnyone, type HtmlPage } from './visit.ts'

export const errorCodeRoutes: readonly ConsoleRoute[] = [forAnyone('GET', '/docs/errors', () => errorCodesPage)]

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

// The API reference: Scalar, served from here, on our OpenAPI document. Its inline styles need a policy of their own.
import { assetAddress } from './assets.ts'
import { html, type Html } from './html.ts'
import { layout } from './layout.ts'
import { referenceTabs } from './reference-tabs.ts'
import { referencePolicy } from './security-headers.ts'
import type { Visit } from './visit.ts'

export function referencePage(visit: Visit): { body: Html; headers: Record<string, string> } {
  const { baseUrl, stagingBaseUrl } = visit.config
  const page = {
    title: 'API reference',
    section: 'reference' as const,
    body: html`${referenceTabs('/docs')}
      <div id="content" tabindex="-1"><div id="reference"><main class="page"><h1>API reference</h1>
        <p>The interactive reference needs JavaScript. Without it, see the <a href="/openapi.json">OpenAPI document</a>,
        the <a href="/docs/errors">error codes</a> and the <a href="/docs/deprecations">deprecations</a>.</p>
      </main></div></div>`,
  }
  const head = html`<link rel="stylesheet" href="${assetAddress('reference.css')}">
<script src="${assetAddress('scalar.js')}" defer></script>
<script src="${assetAddress('reference.js')}" defer></script>
`
  return {
    body: layout(visit, page, { head, wide: true }),
    headers: { 'Content-Security-Policy': referencePolicy([baseUrl, stagingBaseUrl]) },
  }
}

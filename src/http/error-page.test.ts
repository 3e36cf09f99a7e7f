// The page for a refusal outside the API.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { Refusal } from '../contract/errors.ts'
import { renderErrorPage } from './error-page.ts'

it('A page for a refusal says what happened and what to do, with the request id, and runs nothing that came in the request', () => {
  const page = renderErrorPage(new Refusal('malformed_request', 'The Host is not a name: "<script>".'), '<i>')
  assert.match(page, /<p>The Host is not a name: &#34;&#60;script&#62;&#34;\.<\/p>/)
  assert.match(page, /Request id: <code>&#60;i&#62;<\/code>/)
  assert.match(
    renderErrorPage(new Refusal('service_unavailable', 'x'), 'id'),
    /unavailable<\/h1>\n<p>Try again in a few seconds/,
  )
  assert.match(renderErrorPage(new Refusal('internal_error', 'x'), 'id'), /not yours\. If it happens again, report it/)
})

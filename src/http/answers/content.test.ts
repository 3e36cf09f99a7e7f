// The page for a refusal outside the API.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { Refusal } from '../../contract/errors.ts'
import { pageOf } from './content.ts'

it('A page for a refusal says what happened and what to do, with the request id, and runs nothing that came in the request', () => {
  const page = (refusal: Refusal, id: string) => pageOf(refusal, { id }).body
  const malformed = page(new Refusal('malformed_request', 'The Host is not a name: "<script>".'), '<i>')
  assert.match(malformed, /<p>The Host is not a name: &quot;&lt;script&gt;&quot;\.<\/p>/)
  assert.match(malformed, /Request id: <code>&lt;i&gt;<\/code>/)
  assert.match(page(new Refusal('service_unavailable', 'x'), 'id'), /unavailable<\/h1>\n<p>Try again in a few seconds/)
  assert.match(page(new Refusal('internal_error', 'x'), 'id'), /not yours\. If it happens again, report it/)
})

// ETags: what makes one, and which If-None-Match it meets.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { etagOf, matchesEtag } from './conditional.ts'

describe('An ETag', () => {
  it('is strong, the same for the same bytes, and another for others', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (one, other) => {
        assert.match(etagOf(one), /^"[\w-]{22}"$/)
        assert.equal(etagOf(one), etagOf(Buffer.from(one)))
        assert.equal(etagOf(one) === etagOf(other), one === other)
      }),
    )
  })

  it('matches where it is in the list, weak or strong, and by *', () => {
    const etag = etagOf('x')
    for (const value of [etag, `W/${etag}`, `"a", ${etag}`, `"a",${etag},"b"`, '*', ' * '])
      assert.ok(matchesEtag(value, etag), value)
    for (const value of [undefined, '', '"a"', etag.slice(1), `w/${etag}`, `${etag} x`, '**', 'W/*'])
      assert.ok(!matchesEtag(value, etag), String(value))
  })
})

// What is said of a body that is no NewPet. What is taken: test/spec/2-resources.test.ts, and by the document: test/api/openapi.test.ts.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { parseNewPet } from './pets.ts'
import { InvalidFields } from './errors.ts'

describe('parseNewPet', () => {
  it('tells every problem of anything else, a sentence each, and never throws', () => {
    const anything = fc.anything({ withBigInt: true, withNullPrototype: true })
    fc.assert(
      fc.property(
        fc.oneof(anything, fc.record({ name: anything, categoryId: anything, status: anything }, { requiredKeys: [] })),
        (body) => {
          const parsed = parseNewPet(body)
          if (!(parsed instanceof InvalidFields)) return
          assert.ok(parsed.problems.length > 0)
          for (const { message } of parsed.problems) assert.match(message, /^[^]+\.$/)
        },
      ),
    )
    assert.equal((parseNewPet({}) as InvalidFields).problems.length, 2)
  })

  it('says of each field whether it is missing or what came, and of a body that is no object what it is', () => {
    const messageOf = (body: unknown) => (parseNewPet(body) as InvalidFields).message
    assert.match(
      messageOf({ categoryId: 'x' }),
      /^name is missing: it must be a string .*\. categoryId must be an integer .*, got "x"\.$/,
    )
    for (const [body, word] of [
      [null, 'null'],
      [[], 'an array'],
      ['Rex', '"Rex"'],
      [7n, '7'],
      [undefined, 'nothing'],
    ] as const) {
      assert.equal(messageOf(body), `The body must be a JSON object, got ${word}.`)
    }
  })
})

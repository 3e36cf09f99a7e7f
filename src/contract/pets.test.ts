// The parsing of a NewPet, checked against an independent statement of the documented rules.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { INT64_MAX, INT64_MIN } from './int64.ts'
import { parseNewPet, PET_STATUSES } from './pets.ts'
import { InvalidFields } from './errors.ts'

const unit = fc.integer({ min: 0, max: 0x10ffff }).map((code) => String.fromCodePoint(code))
const rex = { name: 'Rex', categoryId: 1n }

/** The documented rule for names, implemented independently. */
function isName(name: string): boolean {
  const characters = [...name]
  return (
    characters.length <= 255 &&
    characters.some((character) => character.trim() !== '') &&
    !characters.includes('\0') &&
    name.isWellFormed()
  )
}

describe('parseNewPet', () => {
  it('takes exactly the names that the documents allow, unchanged', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit, maxLength: 300, size: 'max' }),
          fc.string({ unit: fc.constantFrom(' ', '\t', '\u3000', 'x') }),
          fc.string(),
        ),
        (name) => {
          const parsed = parseNewPet({ ...rex, name })
          assert.equal(!(parsed instanceof InvalidFields), isName(name))
          if (!(parsed instanceof InvalidFields)) assert.equal(parsed.name, name)
        },
      ),
    )
  })

  it('counts the characters of a name as code points, up to the 255th', () => {
    for (const character of ['x', 'ß', '🐈']) {
      assert.ok(!(parseNewPet({ ...rex, name: character.repeat(255) }) instanceof InvalidFields), character)
      assert.ok(parseNewPet({ ...rex, name: character.repeat(256) }) instanceof InvalidFields, character)
    }
  })

  it('gives the fields of a NewPet and nothing else', () => {
    const body = fc.record(
      {
        name: fc.constant('Rex'),
        categoryId: fc.bigInt({ min: INT64_MIN, max: INT64_MAX }),
        status: fc.constantFrom(...PET_STATUSES),
        id: fc.bigInt(),
        owner: fc.anything(),
      },
      { requiredKeys: ['name', 'categoryId'] },
    )
    fc.assert(
      fc.property(body, ({ name, categoryId, status = 'available', ...rest }) => {
        assert.deepEqual(parseNewPet({ name, categoryId, status, ...rest }), { name, categoryId, status })
      }),
    )
  })

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

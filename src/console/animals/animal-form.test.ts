// The form of an animal: what is read of what was typed, and what people are told about it.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { CategoryNames } from '../../contract/category-name.ts'
import { InvalidFields } from '../../contract/errors.ts'
import { type FieldName } from '../../contract/pets.ts'
import { readAnimal } from './animal-form.ts'

const typed: Partial<Record<FieldName, string>> = { name: 'Rex', categoryId: '3', status: 'sold' }
const categories = new CategoryNames(
  Object.entries({ 3: 'Cats', 4: 'Dogs', 5: 'Cats (12)', 7: '1e2' }).map(([number, name]) => ({
    number: BigInt(number),
    name,
  })),
)
const read = (changes: typeof typed) => readAnimal((name) => ({ ...typed, ...changes })[name] ?? '', categories)

describe('The form of an animal', () => {
  it('is read as the API reads an animal; blanks around a number do not count, and an empty status is the default', () => {
    assert.partialDeepStrictEqual(read({}), { name: 'Rex', categoryId: 3n, status: 'sold' })
    assert.partialDeepStrictEqual(read({ name: ' 7 ', categoryId: ' -12\t', status: '' }), {
      name: ' 7 ',
      categoryId: -12n,
      status: 'available',
    })
  })

  const unknown = (text: string, nearest = '') =>
    `No category is named "${text}".${nearest} Enter a name of the list, or a whole number such as 3 or -3`
  const RANGE = 'Category must be from -9223372036854775808 to 9223372036854775807'
  const UNSTORABLE = 'The name has the character U+0000, which cannot be stored. Remove it'
  const wrong: [FieldName, text: string, message: string][] = [
    ['name', '', 'Enter a name'],
    ['name', ' \t', 'Enter a name'],
    ['name', '🐈'.repeat(256), 'The name must have at most 255 characters, got 256'],
    ['name', 'a\0b', UNSTORABLE],
    ['name', `${'🐈'.repeat(130)}\0`, UNSTORABLE],
    ['name', `${'🐈'.repeat(254)}\0`, UNSTORABLE],
    ['categoryId', '', 'Enter a category'],
    ['categoryId', '  ', 'Enter a category'],
    ['categoryId', 'catz', unknown('catz', ' Did you mean Cats?')],
    ['categoryId', 'Dogs (3)', unknown('Dogs (3)')],
    ['categoryId', '3.5', unknown('3.5')],
    ['categoryId', '+3', unknown('+3')],
    ['categoryId', '1e30', unknown('1e30')],
    ['categoryId', '٣', unknown('٣')],
    ['categoryId', ' 9223372036854775808 ', RANGE],
    ['categoryId', '-9223372036854775809', RANGE],
    ['status', 'lost', 'Choose one of Available, Reserved, Sold'],
  ]
  it('says what is wrong with a field', () => {
    for (const [field, text, message] of wrong) {
      const parsed = read({ [field]: text })
      assert.ok(parsed instanceof InvalidFields, text)
      assert.deepEqual(
        parsed.problems.map((problem) => [problem.field, problem.message]),
        [[field, message]],
      )
    }
  })

  it('reads a category by its number or its name in any case; a name that is not all digits wins', () => {
    const meant: [string, bigint][] = [
      ['3', 3n],
      ['12', 12n],
      [' cats ', 3n],
      ['Cats (12)', 5n],
      ['1e2', 7n],
      ['1e3', 1000n],
    ]
    for (const [categoryId, number] of meant)
      assert.partialDeepStrictEqual(read({ categoryId }), { categoryId: number }, categoryId)
  })
})

// The form of an animal: what is read of what was typed, and what people are told about it.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { samplePet } from '../../assurance/harness/sample-pet.ts'
import { withStore } from '../../test/with-store.ts'
import { InvalidFields } from '../contract/errors.ts'
import type { FieldName } from '../contract/pets.ts'
import { animalField, categoriesInUse, readAnimal } from './animal-form.ts'

const typed = { name: 'Rex', categoryId: '3', status: 'sold' }
const read = (changes: Partial<typeof typed>) => readAnimal((name) => ({ ...typed, ...changes })[name])

describe('The form of an animal', () => {
  it('is read as the API reads an animal; blanks around a number do not count, and an empty status is the default', () => {
    assert.partialDeepStrictEqual(read({}), { name: 'Rex', categoryId: 3n, status: 'sold' })
    assert.partialDeepStrictEqual(read({ name: ' 7 ', categoryId: ' -12\t', status: '' }), {
      name: ' 7 ',
      categoryId: -12n,
      status: 'available',
    })
  })

  const DIGITS = 'Category must be a whole number in digits, such as 3 or -3'
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
    ['categoryId', 'cats', DIGITS],
    ['categoryId', '3.5', DIGITS],
    ['categoryId', '+3', DIGITS],
    ['categoryId', '1e30', DIGITS],
    ['categoryId', '٣', DIGITS],
    ['categoryId', ' 9223372036854775808 ', RANGE],
    ['categoryId', '-9223372036854775809', RANGE],
    ['status', 'lost', 'Choose one of the listed statuses'],
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

  it('asks for digits on a phone, suggests categories, and begins with the default status', () => {
    const field = (name: FieldName) => animalField(name, { value: () => '', problems: [], categories: [3n, 12n] }).text
    assert.doesNotMatch(field('name'), /inputmode|list/)
    assert.match(field('categoryId'), /inputmode="numeric"/)
    assert.deepEqual(field('categoryId').match(/<option value="\d+">/g), ['<option value="3">', '<option value="12">'])
    assert.match(field('status'), /<option value="available" selected>/)
  })

  it('suggests each category in use once, in the order of the numbers', async () => {
    await withStore('sqlite::memory:', async (store) => {
      await store.pets.createMany([12n, -3n, 7n, 12n].map((categoryId) => ({ ...samplePet, categoryId })))
      assert.deepEqual(await categoriesInUse(store), [-3n, 7n, 12n])
    })
  })
})

// What petstore copy carries, held against the tables and columns that each engine really has.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { KINDS, LEFT_BEHIND } from '../../src/store/records.ts'
import { readSchema, type Schema } from '../harness/databases/database-schema.ts'
import { withStore } from '../harness/databases/with-store.ts'
import { ENGINES, postgres, type TestEngine } from '../harness/databases/engines.ts'

const TYPES: Record<string, string> = {
  text: 'text',
  integer: 'integer',
  bigint: 'integer',
  blob: 'bytes',
  bytea: 'bytes',
}

async function schemaOf(engine: TestEngine): Promise<Schema> {
  await using database = await engine.newEmptyDatabase()
  await withStore(database.url, async () => {})
  return await readSchema(database.url)
}

describe('a copy', () => {
  const everywhere = new Set<string>()
  const schemas: Schema[] = []

  for (const engine of ENGINES) {
    it(`carries every column of every table on ${engine.name}, except for the tables that are listed as left behind`, async () => {
      const schema = await schemaOf(engine)
      schemas.push(schema)
      for (const table of Object.keys(schema)) everywhere.add(table)
      const carried = Object.entries(schema).filter(([table]) => !Object.hasOwn(LEFT_BEHIND, table))
      const found = carried.map(([table, columns]) => [table, Object.keys(columns).toSorted()])
      const known = KINDS.map(({ name, columns, derived }) => [
        name,
        [...columns, ...(derived?.columns ?? [])].toSorted(),
      ])
      assert.deepEqual(Object.fromEntries(found), Object.fromEntries(known))
    })
  }

  it('leaves behind the tables that the documentation names, all of which are somewhere', () => {
    const text = readFileSync(new URL('../../docs/databases.md', import.meta.url), 'utf8')
    const [, named = ''] = /All data is copied but ([^]*?)\. Then/.exec(text) ?? []
    assert.deepEqual(new Set(named.match(/(?<=`)\w+(?=`)/g)), new Set(Object.keys(LEFT_BEHIND)))
    assert.deepEqual(new Set(Object.keys(LEFT_BEHIND)).difference(everywhere), new Set())
  })

  it('finds the same types in both engines, in the same order: on PostgreSQL, text keys sort by their bytes', () => {
    for (const { name, key, columns } of KINDS) {
      for (const column of columns) {
        const types = schemas.map((schema) => TYPES[schema[name]![column]!.type])
        assert.ok(types[0] !== undefined && types[0] === types[1], `${name}.${column}`)
        const isTextKey = key.includes(column) && types[0] === 'text'
        if (isTextKey) assert.equal(schemas[ENGINES.indexOf(postgres)]![name]![column]!.collation, 'C', column)
      }
    }
  })
})

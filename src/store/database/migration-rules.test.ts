// The rules of migrations.ts that a migration could break without a word, held against the statements of every migration.
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { type Migration, readMigrations } from './migrations.ts'

/** Indexes on PostgreSQL that are built in a transaction although their table is an old one, each with its reason. */
const BUILT_AT_ONCE: Record<string, string> = {
  audit_events_by_batch: 'people make events, one at a time: there are few, and no create waits for them',
}

/** Migrations that only add, but that the program before can't use, each with its reason. */
const NEEDS_ITS_PROGRAM: Record<string, string> = {}

interface Index {
  name: string
  table: string
  columns: string
  /** Of a partial index. */
  condition: string
}

/** Returns the statements of a migration, without comments and the bodies of functions and triggers. */
function statementsOf({ sql }: Migration): string[] {
  const plain = sql.replaceAll(/--.*$/gm, '').replaceAll(/\$\$.*?\$\$|\bBEGIN\b.*?\bEND(?=;)/gs, '')
  const statements = plain.split(';').map((statement) => statement.replaceAll(/\s+/g, ' ').trim())
  return statements.filter((statement) => statement !== '')
}

function namesIn(statements: readonly string[], pattern: RegExp): string[] {
  return statements.flatMap((statement) => pattern.exec(statement)?.[1] ?? [])
}

function indexesIn(statements: readonly string[]): Index[] {
  const pattern = /^CREATE (?:UNIQUE )?INDEX (?:CONCURRENTLY )?(\w+) ON (\w+) \((.*?)\)(?: WHERE (.*))?$/
  return statements.flatMap((statement) => {
    const [, name = '', table = '', columns = '', condition = ''] = pattern.exec(statement) ?? []
    assert.ok(name !== '' || !/^CREATE (?:UNIQUE )?INDEX/.test(statement), `this test can't read ${statement}`)
    return name === '' ? [] : [{ name, table, columns, condition }]
  })
}

/** Whether the release before fails on what the statement leaves: it takes something away, or asks for a value that only this release has. */
function breaksPrograms(statement: string): boolean {
  if (/^DROP (?!INDEX)/.test(statement)) return true
  const [, change] = /^ALTER TABLE \w+ (.*)$/.exec(statement) ?? []
  if (change === undefined) return false
  return !change.startsWith('ADD COLUMN') || (change.includes('NOT NULL') && !change.includes('DEFAULT'))
}

const ENGINES = ['sqlite', 'postgres'].map((engine) => {
  const migrations = readMigrations(`store/${engine}/migrations/`)
  return { engine, migrations, statements: migrations.map(statementsOf) }
})

describe('A migration', () => {
  // Both engines say the same (migrations.test.ts), also where only one of them has statements.
  const [{ migrations }] = ENGINES as [(typeof ENGINES)[number]]
  for (const [index, { name, number, compatibleFrom }] of migrations.entries()) {
    it(`says with which programs it is compatible, as its statements are: ${name}`, () => {
      const breaking = ENGINES.flatMap(({ statements }) => statements[index]!.filter(breaksPrograms))
      const oldest = migrations[index - 1]?.compatibleFrom ?? 1
      const expected = breaking.length > 0 || name in NEEDS_ITS_PROGRAM ? number : oldest
      assert.equal(compatibleFrom, expected, `-- compatible from, with ${breaking.join('; ') || 'additions alone'}`)
    })
  }

  const { migrations: onPostgres, statements } = ENGINES.find(({ engine }) => engine === 'postgres')!
  for (const [index, { name, concurrentIndex }] of onPostgres.entries()) {
    it(`of PostgreSQL builds an index on an old table while creates go on, with "-- concurrently": ${name}`, () => {
      const own = namesIn(statements[index]!, /^CREATE TABLE (\w+)/)
      const blocking = indexesIn(statements[index]!).filter(
        (built) => !own.includes(built.table) && built.name !== concurrentIndex && !(built.name in BUILT_AT_ONCE),
      )
      assert.deepEqual(blocking, [])
    })
  }
})

describe('The indexes that all migrations leave', () => {
  it('are named by no statement, so that a replaced one is dropped while the release before still runs', () => {
    const names = ENGINES.flatMap(({ statements }) => indexesIn(statements.flat()).map(({ name }) => name))
    const naming = new RegExp(`.*(?:INDEXED BY|\\b(?:${names.join('|')})\\b).*`, 'g')
    const sources = globSync('../../**/*.ts', { cwd: import.meta.dirname, exclude: ['**/*.test.ts'] })
    assert.ok(sources.length > 100)
    const read = (file: string) => readFileSync(join(import.meta.dirname, file), 'utf8')
    assert.deepEqual(
      sources.flatMap((file) => read(file).match(naming) ?? []),
      [],
    )
  })

  for (const { engine, statements } of ENGINES) {
    it(`have none whose columns another begins with, in ${engine}: it was replaced, and costs every write`, () => {
      const all = statements.flat()
      const dropped = new Set(namesIn(all, /^DROP INDEX (\w+)/))
      const kept = indexesIn(all).filter(({ name }) => !dropped.has(name))
      const isReplacedBy = (one: Index, other: Index) =>
        other !== one &&
        other.table === one.table &&
        other.condition === one.condition &&
        `${other.columns}, `.startsWith(`${one.columns}, `)
      const replaced = kept.filter((one) => kept.some((other) => isReplacedBy(one, other)))
      assert.deepEqual(replaced, [])
    })
  }
})

// Which migrations a database lacks, and with which newer migrations a program is compatible.
import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { pathToFileURL } from 'node:url'
import { type Migration, missingMigrations, openedBy, readMigrations } from './migrations.ts'

/** Migrations 1, 2, 3 … that are compatible from these numbers. */
function migrations(...compatibleFrom: number[]): Migration[] {
  return compatibleFrom.map((from, index) => ({
    number: index + 1,
    name: `000${index + 1}`,
    compatibleFrom: from,
    hash: '',
    sql: '',
    concurrentIndex: undefined,
  }))
}

function read(files: Record<string, string>): Migration[] {
  const folder = mkdtempSync(join(tmpdir(), 'petstore-test-'))
  try {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
    return readMigrations(pathToFileURL(`${folder}/`).href)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

describe('Migrations', () => {
  const FIRST = '-- compatible from 1\nSELECT 1;'
  const INDEX = 'CREATE INDEX CONCURRENTLY pets_by_name ON pets (name);'
  const CONCURRENT = `-- compatible from 1\n-- concurrently\n\n-- Why.\n${INDEX}\n`

  it('are read in the order of their numbers, with what they say of themselves', () => {
    const beside = { 'README.md': '', '0001-first.sql~': '', '.DS_Store': '' }
    const two = read({ '0002-more.sql': CONCURRENT, '0001-first.sql': FIRST, ...beside })
    assert.deepEqual(
      two.map(({ sql: _sql, hash: _hash, ...rest }) => rest),
      [
        { number: 1, name: '0001-first', compatibleFrom: 1, concurrentIndex: undefined },
        { number: 2, name: '0002-more', compatibleFrom: 1, concurrentIndex: 'pets_by_name' },
      ],
    )
  })

  it('build at most one index each, if they do so outside of a transaction', () => {
    for (const statements of [
      '',
      'CREATE INDEX pets_by_name ON pets (name);',
      `${INDEX}\n${INDEX}`,
      `${INDEX} DROP INDEX x;`,
      'CREATE INDEX CONCURRENTLY IF NOT EXISTS pets_by_name ON pets (name);',
    ]) {
      const text = `-- compatible from 1\n-- concurrently\n${statements}\n`
      assert.throws(() => read({ '0001-first.sql': text }), /must be one statement, CREATE INDEX CONCURRENTLY/)
    }
  })

  it('must not leave out a number, or be silent about who can use them', () => {
    assert.throws(
      () => read({ '0001-first.sql': FIRST, '0003-more.sql': FIRST }),
      /0003-more\.sql should have the number 2/,
    )
    for (const head of [
      '',
      '-- compatible from 0\n',
      '-- compatible from 2\n',
      '-- compatible\n',
      '-- Compatible from 1\n',
      '\n-- compatible from 1\n',
    ]) {
      assert.throws(
        () => read({ '0001-first.sql': `${head}SELECT 1;` }),
        /must begin with "-- compatible from N"/,
        head,
      )
    }
  })

  it('are the same in both engines, as far as programs can tell', () => {
    const [sqlite, postgres] = ['sqlite', 'postgres'].map((engine) =>
      readMigrations(`store/${engine}/migrations/`).map(({ number, name, compatibleFrom }) => ({
        number,
        name,
        compatibleFrom,
      })),
    )
    assert.deepEqual(sqlite, postgres)
  })

  it('are applied from where the database stands', () => {
    const [one, two, three] = migrations(1, 1, 2)
    assert.deepEqual(missingMigrations([one!, two!, three!], [], 'x'), [one, two, three])
    assert.deepEqual(missingMigrations([one!, two!, three!], [one!], 'x'), [two, three])
    assert.deepEqual(missingMigrations([one!, two!, three!], [one!, two!, three!], 'x'), [])
  })

  it('have created the database if the first is among those that were applied', () => {
    const [one, two] = migrations(1, 1)
    assert.deepEqual(openedBy([one!, two!]), { created: true, migrations: ['0001', '0002'], warnings: [] })
    assert.deepEqual(openedBy([two!], ['slow']), { created: false, migrations: ['0002'], warnings: ['slow'] })
    assert.equal(openedBy([]).created, false)
  })

  it('that a program does not know stop it, unless all of them are compatible with it', () => {
    const program = migrations(1, 1)
    for (const compatible of [
      [1, 1, 1],
      [1, 1, 2],
      [1, 1, 2, 1],
      [1, 1, 2, 2, 2],
    ]) {
      assert.deepEqual(missingMigrations(program, migrations(...compatible), 'x'), [])
    }
    for (const incompatible of [
      [1, 1, 3],
      [1, 1, 3, 1],
      [1, 1, 1, 3],
      [1, 1, 1, 4],
      [1, 1, 3, 3],
    ]) {
      const { length } = incompatible
      assert.throws(
        () => missingMigrations(program, migrations(...incompatible), 'x'),
        new RegExp(`^CannotOpenStore: x has schema version ${length}, this program knows only up to 2\\.`),
      )
    }
  })
})

/** The SHA-256 of every migration of a release, by engine: a released one never changes. */
const RELEASED: Record<string, string> = {
  'sqlite/migrations/0001-first.sql': '96f7157a722264b1d73f13faa0042970876f0e4c732c676740bb55d941d1841a',
  'postgres/migrations/0001-first.sql': 'a5971080472a1f438f75f18418059eb812175c122af80f8cf64d017ff8516f98',
}

describe('The migrations of a release', () => {
  for (const [file, expected] of Object.entries(RELEASED)) {
    it(`stay as they are: ${file}`, () => {
      assert.equal(hash('sha256', readFileSync(new URL(`../${file}`, import.meta.url))), expected)
    })
  }
})

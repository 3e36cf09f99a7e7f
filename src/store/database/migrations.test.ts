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
      two.map(({ sql: _sql, ...rest }) => rest),
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
const RELEASED = {
  'sqlite/migrations/0001-first.sql': 'd5e661b5be09271597c5f6517445561088a7b047ac0135ef98cc02ce5b9e970a',
  'sqlite/migrations/0002-count-lock-order.sql': 'dc27f28863a341537bf35376b0533bbf1af141fb562dc72617c709df8fb949e0',
  'sqlite/migrations/0003-animal-history.sql': '2b96203a0b238f6ae8f064e644881b8512a6311ef0ccddd37b0250af79ece668',
  'sqlite/migrations/0004-search.sql': '056ce7c84e59a7efb3c7cd2c066ccd7edcc1b8f4954ea3761e35b8ec306e3af3',
  'sqlite/migrations/0005-changes-and-categories.sql':
    '1937a6fd044564ee502149b97daaec3651fe856e617feac25646e1fc80a8a85f',
  'sqlite/migrations/0006-by-category.sql': 'f66fd23924065da7eb6b841e9b5e60811a7f2f51eadf24cd7af596a32439eec8',
  'sqlite/migrations/0007-added-in-console.sql': 'db6ecd891bf52695f5915c6347081b1b26a2d4451a392c79d2eb111f964a3adc',
  'sqlite/migrations/0008-people.sql': 'fcf82c42a381b839f0038bee6b2e9c6ad9fe174a24e24a101d34f761017207df',
  'sqlite/migrations/0009-look-alikes.sql': 'ff8371c9744dd718fd60eaad5c49aac95fa18ed259cf9f7355a0b1a6204878d8',
  'sqlite/migrations/0010-links-of-a-password.sql': '92a1cc873d5ce27c680ba2bbdc6551fbcf4cdabba80f0962a48d0d87299bf0d9',
  'sqlite/migrations/0011-security-log.sql': '3dacea23e9d896d0f5f55375db5d5e2b20fde0a79b9481532a899be1df68f15c',
  'sqlite/migrations/0012-uploads.sql': '2821bdc6882e9f9ef05aea167defa522b33a81ef060d2ffd669ad3177c19350d',
  'postgres/migrations/0001-first.sql': '14e83b184fb6873d482792426c3e4e205e274ed52c496b30e20264e072531aeb',
  'postgres/migrations/0002-count-lock-order.sql': '1d18518277ef2d565f9937793b2acbb1ccb654381d8ff95711bcc562ac885808',
  'postgres/migrations/0003-animal-history.sql': '392a5ad02fb15e36ed9ad0c58b9578dc3c75839d3f8988e9f00c10e01e205427',
  'postgres/migrations/0004-search.sql': 'b58e7076c13313124c4acd162da66939fcb6801be73591be7fdd45f95de074a0',
  'postgres/migrations/0005-changes-and-categories.sql':
    '7e30c5c43d8454080938434a255da09fdbf594571d8ba20b1e996ec27ccbaa9b',
  'postgres/migrations/0006-by-category.sql': '26dad78533cd448dd51ffd062fc6d5e4e7f6f93dca025fa9d7c298aa94ceca83',
  'postgres/migrations/0007-added-in-console.sql': '887f74c907918549a36d04f9060e7cb3dd67512e55790628d111ce5b8f4a4ec8',
  'postgres/migrations/0008-people.sql': 'c4cf0f461f1f1074c8170f3860af0cf850cba52efa56cf06645cae4de06ac99e',
  'postgres/migrations/0009-look-alikes.sql': 'ff8371c9744dd718fd60eaad5c49aac95fa18ed259cf9f7355a0b1a6204878d8',
  'postgres/migrations/0010-links-of-a-password.sql':
    '331ad7c6a14403667d1def41f6940ae86e6867dbcb20ccb1ebc978ead91bba19',
  'postgres/migrations/0011-security-log.sql': '4a4f840d939aa4e41576de84b6d3e94eaea67428dc8e88180cea74dedf7b12aa',
  'postgres/migrations/0012-uploads.sql': '6dd25a76c78d6c5ea47c4cfa437c509d23bdcf677cad48be5c0df5696657ef14',
}

describe('The migrations of a release', () => {
  for (const [file, expected] of Object.entries(RELEASED)) {
    it(`stay as they are: ${file}`, () => {
      assert.equal(hash('sha256', readFileSync(new URL(`../${file}`, import.meta.url))), expected)
    })
  }
})

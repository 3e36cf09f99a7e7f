// A command in the wrong folder, or with the wrong address: it creates no store unnoticed, and what it suggests leads to its own.
import assert from 'node:assert/strict'
import { existsSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { COMMANDS } from '../src/cli/commands.ts'
import { ENGINES } from '../assurance/harness/engines.ts'
import { atTerminal, Folder, hasTerminal } from './command.ts'
import { PASSWORD } from './harness.ts'
import { type InProcessOptions, petstore } from './in-process-command.ts'

/** A line for every command; `true` for those that create a store where there is none. */
const LINES: Record<string, [words: string, creates: boolean]> = {
  serve: ['serve', true],
  migrate: ['migrate', true],
  'account create': ['account create you@example.com --password-stdin', true],
  'account list': ['account list', false],
  'account password': ['account password you@example.com --password-stdin', false],
  'account remove': ['account remove you@example.com --yes', false],
  'key create': ['key create --account you@example.com --name x', false],
  'key list': ['key list', false],
  'key revoke': ['key revoke key_1', false],
  'environment show': ['environment show', false],
  'environment set': ['environment set production --yes', false],
  seed: ['seed --count 1', true],
  import: ['import animals.csv', true],
  export: ['export out.csv', false],
  copy: ['copy --from sqlite:other.db --to sqlite:data/petstore.db', true],
  backup: ['backup out.db', false],
  restore: ['restore other.db', true],
  doctor: ['doctor', false],
  openapi: ['openapi', false],
  completion: ['completion bash', false],
}
const NEVER_ASK = new Set(['serve', 'migrate'])
const NOTE =
  /\nNote: there was no store at .*\/data\/petstore\.db, so this command created one\. Was another meant\?.*\n$/

/** A folder without a store, but with files that commands read. */
async function wrongFolder(): Promise<Folder> {
  const folder = await Folder.create()
  await folder.runInProcess(['migrate', '--database', 'sqlite:other.db'])
  writeFileSync(join(folder.path, 'animals.csv'), 'name,categoryId\nRex,1\n')
  return folder
}

/** Runs the line of a command in a folder without a store; resolves with whether there is one afterwards. */
async function runIn(folder: Folder, name: string, options: InProcessOptions) {
  const stop = { stopSignal: async () => 'SIGINT', env: { PORT: '0' } }
  const ended = await folder.runInProcess(LINES[name]![0].split(' '), { ...(name === 'serve' && stop), ...options })
  return { ...ended, exists: existsSync(join(folder.path, 'data')) }
}

describe('A command where there is no store', () => {
  it('has a line here', () => {
    const names = COMMANDS.filter(({ hidden }) => !hidden).map(({ name }) => name)
    assert.deepEqual(Object.keys(LINES).toSorted(), names.toSorted())
  })

  for (const [name, [, creates]] of Object.entries(LINES)) {
    const asks = creates && !NEVER_ASK.has(name)
    it(`${asks ? 'asks on a terminal before it creates one, with the path' : 'asks nothing'}: ${name}`, async () => {
      for (const [typed, isCreated] of [
        ['n\n', creates && !asks],
        ['\n', creates && !asks],
        ['YES\n', creates],
      ] as const) {
        if (name === 'account create') continue
        await using folder = await wrongFolder()
        const place = join(realpathSync(folder.path), 'data/petstore.db')
        const { exists, stderr } = await runIn(folder, name, { typed })
        assert.equal(exists, isCreated, `${typed}: ${stderr}`)
        assert.equal(stderr.includes(`There is no store at ${place} yet. Create one? [y/N] `), asks, stderr)
        assert.equal(/Nothing was created\. Name another database with --/.test(stderr), asks && !isCreated, stderr)
        assert.doesNotMatch(stderr, NOTE)
      }
    })

    it(`${asks ? 'says so in its last line' : 'adds no last line'} where there is no terminal: ${name}`, async () => {
      await using folder = await wrongFolder()
      const { code, exists, stderr } = await runIn(folder, name, { input: PASSWORD })
      assert.equal(exists, creates, stderr)
      assert.equal(NOTE.test(`\n${stderr}`), asks, stderr)
      if (asks) {
        assert.equal(code, 0)
        const again = await runIn(folder, name, { input: PASSWORD })
        assert.doesNotMatch(again.stderr, NOTE, 'the second time it is there')
      }
    })
  }

  it('says so after all else also if it fails then', async () => {
    await using folder = await wrongFolder()
    writeFileSync(join(folder.path, 'many.csv'), `name,categoryId\n${'Rex,1\n'.repeat(600)}`)
    const stopped = await folder.runInProcess(['import', 'many.csv'], {
      stopSignal: async () => 'SIGINT',
    })
    assert.equal(stopped.code, 130)
    assert.match(stopped.stderr, /Interrupted: 500 of 600 rows/)
    assert.match(stopped.stderr, NOTE)
  })

  it('asks before a password is typed, on a real terminal', { skip: !hasTerminal }, async () => {
    for (const answer of ['y', 'n']) {
      await using folder = await Folder.create()
      const typed = { '[y/N] ': `${answer}\r`, 'characters): ': `${PASSWORD}\r`, 'again: ': `${PASSWORD}\r` }
      const { code, stdout } = await atTerminal(folder, 'account create you@example.com', typed)
      const question = `There is no store at ${realpathSync(folder.path)}/data/petstore.db yet. Create one? [y/N] `
      assert.ok(stdout.startsWith(question), stdout)
      assert.deepEqual([code, stdout.includes('Password')], answer === 'y' ? [0, true] : [1, false], stdout)
      assert.equal(existsSync(join(folder.path, 'data')), answer === 'y')
    }
  })
})

describe('A suggested command', () => {
  const next = async (options: InProcessOptions, ...words: string[]) => {
    const { stderr } = await petstore(['account', 'list', ...words], options)
    return /Create one: (.*)\n$/.exec(stderr)?.[1] ?? assert.fail(stderr)
  }

  for (const engine of ENGINES) {
    it(`names the database, however it was given, without its password, on ${engine.name}`, async () => {
      await using folder = await Folder.create()
      await using database = await engine.newDatabase()
      await petstore(['migrate', '--database', database.url])
      const file = join(folder.path, 'address')
      writeFileSync(file, `${database.url}\n`)
      const masked = `DATABASE_URL='${database.url.replace(/:[^:/@]+@/, ':PASSWORD@')}' petstore account create EMAIL`
      const named = `petstore account create EMAIL --database ${database.url}`
      const expected = engine === ENGINES[0] ? named : masked
      const byFile = engine === ENGINES[0] ? named : `DATABASE_URL_FILE=${file} petstore account create EMAIL`
      assert.equal(await next({}, '--database', database.url), expected)
      assert.equal(await next({ env: { DATABASE_URL: database.url } }), expected)
      assert.equal(await next({ env: { DATABASE_URL_FILE: file } }), byFile)
    })
  }

  it('works in another folder too, and names no database that is the default', async () => {
    await using folder = await Folder.create()
    const place = join(realpathSync(folder.path), 'shop.db')
    await folder.runInProcess(['migrate', '--database', 'sqlite:shop.db'])
    await folder.runInProcess(['migrate'])
    const told = async (...words: string[]) => (await folder.runInProcess(['account', 'list', ...words])).stderr
    assert.match(await told('--database', 'sqlite:shop.db'), new RegExp(`EMAIL --database sqlite:${place}\n$`))
    assert.match(await told(), /Create one: petstore account create EMAIL\n$/)
  })

  it('completes what serve and doctor refuse', async () => {
    await using folder = await Folder.create()
    const env = { DATABASE_URL: `sqlite:${join(folder.path, 'shop.db')}`, PETSTORE_ENVIRONMENT: 'production' }
    await petstore(['migrate'], { env })
    const { stderr } = await petstore(['serve'], { env: { ...env, PETSTORE_ENVIRONMENT: 'staging', PORT: '0' } })
    const command = `petstore environment set staging --database ${env.DATABASE_URL}`
    assert.ok(stderr.endsWith(`To move it to staging, where its keys are refused: ${command}\n`), stderr)
    writeFileSync(join(folder.path, 'empty.db'), '')
    const checked = await petstore(['doctor', '--database', `sqlite:${join(folder.path, 'empty.db')}`])
    assert.ok(
      checked.stdout.includes(`or run: petstore migrate --database sqlite:${folder.path}/empty.db\n`),
      checked.stdout,
    )
  })
})

describe('petstore seed', () => {
  for (const engine of ENGINES)
    it(`adds nothing to a store of production, and creates none, on ${engine.name}`, async () => {
      await using database = await engine.newDatabase()
      const seed = (env: Record<string, string>) =>
        petstore(['seed', '--count', '3', '--database', database.url], { env })
      const refused =
        /petstore: .* belongs to production, where made-up animals would stay for good; nothing was added\. Name a database of staging/
      const first = await seed({ PETSTORE_ENVIRONMENT: 'production' })
      assert.equal(first.code, 1)
      assert.match(first.stderr, refused)
      assert.match(
        (await petstore(['account', 'list', '--database', database.url])).stderr,
        /There is no petstore database/,
      )
      await petstore(['migrate', '--database', database.url, '--environment', 'production'])
      // The database decides, whatever the setting says.
      for (const env of [{}, { PETSTORE_ENVIRONMENT: 'staging' }, { PETSTORE_ENVIRONMENT: 'production' }]) {
        const { code, stderr } = await seed(env)
        assert.equal(code, 1)
        assert.match(stderr, refused)
      }
      const exported = await petstore(['export', '-', '--format', 'jsonl', '--database', database.url])
      assert.equal(exported.stdout, '')
    })
})

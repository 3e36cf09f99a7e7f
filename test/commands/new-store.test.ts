// A command in the wrong folder, or with the wrong address: it creates no store unnoticed, and what it suggests leads to its own.
import assert from 'node:assert/strict'
import { existsSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { COMMANDS } from '../../src/cli/commands.ts'
import { ENGINES } from '../harness/databases/engines.ts'
import { atTerminal, Folder, hasTerminal } from '../harness/programs/command.ts'
import { askDatabase } from '../harness/databases/database-schema.ts'
import { PASSWORD } from '../harness/harness.ts'
import { commandsOn, type InProcessOptions, petstore, stopOnceServing } from '../harness/programs/in-process-command.ts'

/** A line for every command, and whether it creates a store where there is none, with a question on a terminal. */
const LINES: Record<string, [line: string, creates?: 'asks' | 'never asks']> = {
  serve: ['serve', 'never asks'],
  migrate: ['migrate', 'never asks'],
  'account create': ['account create you@example.com --password-stdin', 'asks'],
  'account list': ['account list'],
  'account password': ['account password you@example.com --password-stdin'],
  'account manager': ['account manager you@example.com'],
  'account remove': ['account remove you@example.com --yes'],
  'key create': ['key create --account you@example.com --name x'],
  'key list': ['key list'],
  'key revoke': ['key revoke key_1'],
  'environment show': ['environment show'],
  'environment set': ['environment set production --yes'],
  'category create': ['category create Cats', 'asks'],
  seed: ['seed --count 1', 'asks'],
  import: ['import animals.csv', 'asks'],
  export: ['export out.csv'],
  copy: ['copy --from sqlite:other.db --to sqlite:data/petstore.db', 'asks'],
  distribute: ['distribute --shards 4'],
  backup: ['backup out.db'],
  restore: ['restore other.db', 'asks'],
  doctor: ['doctor'],
  openapi: ['openapi'],
  health: ['health --port 1'],
  mcp: ['mcp --url http://127.0.0.1:1'],
}
const CREATED = /^Created the database .*\/data\/petstore\.db\. It belongs to staging/

/** A folder without a store, but with files that commands read. */
async function wrongFolder(): Promise<Folder> {
  const folder = await Folder.create()
  await folder.commands.call(0, 'migrate --database sqlite:other.db')
  folder.write('animals.csv', 'name,categoryId\nRex,1\n')
  return folder
}

/** Runs the line of a command in a folder without a store; resolves with whether there is one afterwards. */
async function runIn(folder: Folder, name: string, options: InProcessOptions) {
  const stop = { ...stopOnceServing(), env: { PORT: '0' } }
  const ended = await folder.commands.run(LINES[name]![0], { ...(name === 'serve' && stop), ...options })
  return { ...ended, exists: existsSync(folder.at('data')) }
}

describe('A command where there is no store', () => {
  it('has a line here', () => {
    const names = COMMANDS.map(({ name }) => name)
    assert.deepEqual(Object.keys(LINES).toSorted(), names.toSorted())
  })

  it('asks and creates nothing if it only reads, on a terminal or not', async () => {
    await using folder = await wrongFolder()
    for (const [name] of Object.entries(LINES).filter(([, [, creates]]) => creates === undefined))
      for (const options of [{ typed: 'YES\n' }, { input: PASSWORD }]) {
        const { exists, stderr } = await runIn(folder, name, options)
        assert.ok(!exists && !/Create one\?|Created/.test(stderr), `${name}: ${stderr}`)
      }
  })

  for (const [name, [, creates]] of Object.entries(LINES)) {
    if (creates === undefined) continue
    const asks = creates === 'asks'
    it(`${asks ? 'asks on a terminal before it creates one, with the path' : 'asks nothing'}: ${name}`, async () => {
      for (const [typed, isCreated] of [
        ['\n', !asks],
        ['YES\n', true],
      ] as const) {
        if (name === 'account create') continue
        await using folder = await wrongFolder()
        const place = join(realpathSync(folder.path), 'data/petstore.db')
        const { exists, stderr } = await runIn(folder, name, { typed })
        assert.equal(exists, isCreated, `${typed}: ${stderr}`)
        assert.equal(stderr.includes(`There is no store at ${place} yet. Create one? [y/N] `), asks, stderr)
        assert.equal(/Nothing was created\. Name another database with --/.test(stderr), asks && !isCreated, stderr)
      }
    })

    it(`creates one without a question where there is no terminal: ${name}`, async () => {
      await using folder = await wrongFolder()
      const { code, exists, stderr } = await runIn(folder, name, { input: PASSWORD })
      assert.deepEqual([code, exists], [0, true], stderr)
      // What these two are for is a new store, which their own message names.
      const isAnnounced = asks && !['copy', 'restore'].includes(name)
      assert.equal(CREATED.test(stderr), isAnnounced || name === 'migrate', stderr)
      assert.doesNotMatch(
        (await runIn(folder, name, { input: PASSWORD })).stderr,
        CREATED,
        'the second time it is there',
      )
    })
  }

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
      await using database = await engine.newEmptyDatabase()
      await commandsOn(database.url).call(0, 'migrate')
      const file = folder.write('address', `${database.url}\n`)
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
    for (const options of ['', ' --database sqlite:shop.db']) await folder.commands.call(0, `migrate${options}`)
    const told = async (options = '') => (await folder.commands.call(0, `account list${options}`)).stderr
    assert.match(await told(' --database sqlite:shop.db'), new RegExp(`EMAIL --database sqlite:${place}\n$`))
    assert.match(await told(), /Create one: petstore account create EMAIL\n$/)
  })

  it('completes what serve and doctor refuse', async () => {
    await using folder = await Folder.create()
    const url = `sqlite:${folder.at('shop.db')}`
    const commands = commandsOn(url)
    await commands.call(0, 'migrate --environment production')
    const { stderr } = await commands.call(1, 'serve --environment staging --port 0')
    const command = `petstore environment set staging --database ${url}`
    assert.ok(stderr.endsWith(`To move it to staging, where its keys are refused: ${command}\n`), stderr)
    await askDatabase(`sqlite:${folder.at('empty.db')}`, 'PRAGMA journal_mode = WAL')
    const { stdout } = await commands.call(0, `doctor --database sqlite:${folder.at('empty.db')}`)
    assert.ok(stdout.includes(`or run: petstore migrate --database sqlite:${folder.path}/empty.db\n`), stdout)
  })
})

describe('petstore seed', () => {
  for (const engine of ENGINES)
    it(`adds nothing to a store of production, and creates none, on ${engine.name}`, async () => {
      await using database = await engine.newEmptyDatabase()
      const commands = commandsOn(database.url)
      const why =
        /petstore: .* belongs to production, where made-up animals would stay for good; nothing was added\. Name a database of staging/
      const seed = (env: Record<string, string>) => commands.refused(1, 'seed --count 3', why, { env })
      await seed({ PETSTORE_ENVIRONMENT: 'production' })
      await commands.refused(1, 'account list', /There is no petstore database/)
      await commands.call(0, 'migrate --environment production')
      // The database decides, whatever the setting says.
      for (const env of [{}, { PETSTORE_ENVIRONMENT: 'staging' }, { PETSTORE_ENVIRONMENT: 'production' }])
        await seed(env)
      assert.equal((await commands.call(0, 'export - --format jsonl')).stdout, '')
    })
})

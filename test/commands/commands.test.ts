// bin/petstore as people and scripts call it: forms, output, messages and exit codes. src/cli/commands.test.ts has the words.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, relative } from 'node:path'
import { describe, it } from 'node:test'
import { COMMANDS } from '../../src/cli/commands.ts'
import { renderOpenapi } from '../../src/contract/openapi.ts'
import { SETTINGS } from '../../src/config.ts'
import { INT64_MAX } from '../../src/contract/int64.ts'
import { VERSION } from '../../src/contract/operations.ts'
import { postgres, sqlite } from '../harness/databases/engines.ts'
import { collect } from '../harness/programs/processes.ts'
import { BIN, Folder } from '../harness/programs/command.ts'
import { askDatabase, MIGRATION_NAMES } from '../harness/databases/database-schema.ts'
import { commandsOn, petstore, stopOnceServing } from '../harness/programs/in-process-command.ts'

const EMAIL = 'you@example.com'
const PASSWORD = 'correct horse battery'
/** Of calls that open no database. */
const commands = commandsOn('sqlite:/nonexistent/petstore.db')

describe('petstore', { concurrency: 3 }, () => {
  it('says its version and its help, which leads with examples', async () => {
    const out = async (line: string) => (await commands.call(0, line === '' ? [] : line)).stdout
    assert.equal(await out('--version'), `${VERSION}\n`)
    for (const line of ['', 'help', '--help', 'help help']) {
      const text = await out(line)
      assert.ok(text.startsWith(`petstore ${VERSION}: `))
      assert.match(text, /^.*\n\nExamples\n {2}petstore serve/)
      for (const name of ['serve', 'account create', 'key revoke', 'openapi', 'help', '--version'])
        assert.ok(text.includes(`\n  ${name}`), name)
    }
    const serveHelp = await out('help serve')
    for (const { flag, value, variable, allowed, meaning } of Object.values(SETTINGS)) {
      for (const part of [`--${flag} ${value} `, meaning, allowed, variable])
        assert.ok(serveHelp.includes(part), `${flag}: ${part}`)
    }
    for (const line of ['key create --help', 'key create --name x -h', '--help key create', 'help key create'])
      assert.match(await out(line), /^petstore key create: .*\n\nExamples\n/)
    for (const line of ['help key', 'key --help'])
      assert.match(
        await out(line),
        /^petstore key: create, list, revoke\n\nExamples\n {2}petstore key create [^]*\n {2}key revoke +Revoke/,
      )
  })

  it('prints JSON and nothing else on standard output with --json: every command that has it, as its help calls it', async () => {
    await using folder = await Folder.create()
    folder.write('animals.csv', 'name,categoryId\nRex,3\n')
    const withJson = COMMANDS.filter(({ options }) => 'json' in options)
    const others = COMMANDS.filter((command) => !withJson.includes(command))
    assert.deepEqual(new Set(others.map(({ name }) => name)), new Set(['serve', 'health', 'mcp', 'openapi']))
    // After these the others are refused.
    const last = ['account remove', 'environment set']
    for (const { name, examples } of withJson.toSorted(
      (one, other) => last.indexOf(one.name) - last.indexOf(other.name),
    )) {
      const line = examples[0]!.replace(/^petstore | --json|postgres:\S+/g, (text) =>
        text.startsWith('po') ? 'sqlite:copied.db' : '',
      )
      const words = { restore: ' --database sqlite:restored.db', export: ' --force' }[name] ?? ''
      const password = /^account (?:create|password)/.test(name) ? ' --password-stdin' : ''
      const { code, stdout, stderr } = await folder.commands.run(`${line}${words}${password} --json`, {
        input: PASSWORD,
      })
      if (name === 'distribute') assert.deepEqual([code, stdout], [1, ''], 'only PostgreSQL can')
      else assert.equal(code, 0, line + stderr)
      if (stdout !== '' || name !== 'distribute') JSON.parse(stdout)
    }
  })

  it('creates no database where it only reads, and says by its whole path which one is missing', async () => {
    await using database = await sqlite.newEmptyDatabase()
    const on = commandsOn(database.url, { input: PASSWORD })
    const path = database.url.slice('sqlite:'.length)
    const reading = [
      'account list',
      'key list',
      'key list --json',
      'environment show',
      'environment set staging',
      'key revoke key_1',
      `account remove ${EMAIL} --yes`,
      `account password ${EMAIL} --password-stdin`,
      `key create --account ${EMAIL} --name x`,
    ]
    const message = `petstore: There is no petstore database at ${path}. The service creates one when it starts; --database or DATABASE_URL names another.\n`
    for (const line of reading) await on.refused(1, line, message)
    assert.deepEqual(readdirSync(dirname(path)), [])
    writeFileSync(path, '')
    await on.refused(1, 'key list', /petstore\.db is empty, not a store\. Restore a backup to it/)
    assert.deepEqual(readdirSync(dirname(path)), ['petstore.db'])
  })

  it('tells a wrong call on standard error, where help is, and ends with 2', async () => {
    const count = /--count must be a whole number from 1 to 100000000, got /
    const calls: [line: string, message: string | RegExp][] = [
      ['purr', 'petstore: There is no command "purr".\nSee: petstore help\n'],
      ['start', 'petstore: There is no command "start". Did you mean serve?\nSee: petstore help\n'],
      ['version', /Did you mean --version\?/],
      ['pet add', /There is no command "pet"\. Did you mean import\?/],
      ['account delete a@b.c', /There is no command "account delete"\. Did you mean account remove\?/],
      ['--database sqlite:x.db key list', /The command comes first, then its options: key list --database …\n/],
      ['--port 8081', /The command comes first, then its options: COMMAND --port …\n/],
      ['serve --purr', 'petstore: serve has no option --purr. Did you mean --port?\nSee: petstore help serve\n'],
      ['account create', /account create takes EMAIL, got none\./],
      [`account create ${EMAIL}`, /Give the password on standard input, with --password-stdin\./],
      ['key create --name x', /Name the account that the key belongs to, with --account EMAIL\./],
      [`key create --account ${EMAIL}`, /Give the key a name, with --name NAME\./],
      ['seed', /--count must be a whole number from 1 to 100000000, got nothing\./],
      ...['1.5', '-5', '0', '100000001'].map((number): [string, RegExp] => [`seed --count ${number}`, count]),
      ['environment set live', /NAME must be production or staging, got "live"\./],
    ]
    for (const [line, message] of calls) await commands.refused(2, line, message)
    assert.ok(!existsSync('/nonexistent'))
  })

  it('names a bad setting, its value and what is allowed, whether flag, variable or the .env file of this very folder', async () => {
    await commands.refused(
      2,
      'serve --port 65536',
      'petstore: --port must be a port number from 0 to 65535 (0 picks a free one), got "65536".\nSee: petstore help serve\n',
    )
    await commands.refused(
      2,
      'serve',
      /^petstore: PETSTORE_BASE_URL must be an http or https URL that ends in \/v1, got "https:\/\/pets\.example"\./,
      { env: { PETSTORE_BASE_URL: 'https://pets.example' } },
    )
    await using folder = await Folder.create()
    folder.write('.env', 'PETSTORE_ENVIRONMENT=live\n')
    const { code, stderr } = await folder.run(['serve'])
    assert.match(stderr, /^petstore: PETSTORE_ENVIRONMENT must be production or staging, got "live"\./)
    mkdirSync(folder.at('below'))
    const below = await folder.run(['openapi'], { wrap: ['env', '--chdir', 'below'] })
    assert.deepEqual([code, below.code], [2, 0])
  })

  it('repeats no password of an address, wherever it was typed', async () => {
    const address = 'sqlite://me:hunter2@db/pets'
    const calls: [words: string[], env?: Record<string, string>][] = [
      [['serve', '--database', address]],
      [['serve', '--base-url', 'https://me:hunter2@pets.example/v1']],
      [['migrate'], { DATABASE_URL: address }],
      [['migrate'], { PORT: address }],
      [['migrate'], { DATABASE_URL_FILE: address }],
      [['migrate', address]],
      [['serve', 'postgres://me:hunt hunter2@db']],
      [[address]],
      [['postgres://me:hunt hunter2@db']],
      [['key', address]],
      [['key', 'list', `--json=${address}`]],
      [['backup', address]],
      [['restore', address]],
      [['import', address, '--format', 'csv']],
      [['import', address]],
      [['export', address, '--format', 'csv']],
      [['key', 'revoke', address]],
      [['copy', '--from', address, '--to', address]],
    ]
    for (const [words, env = {}] of calls) {
      const { code, stdout, stderr } = await petstore(words, { env, input: PASSWORD })
      const isRedacted = code !== 0 && stdout === '' && stderr.startsWith('petstore: ') && !stderr.includes('hunter2')
      assert.ok(isRedacted, `${words.join(' ')}: ${stderr}`)
    }
  })

  it('reads a .env file; the environment wins over it, also in the other form of a setting, and a flag over both', async () => {
    await using folder = await Folder.create()
    const migrate = async (env: Record<string, string>, ...words: string[]) => {
      const { stdout } = await folder.run(['migrate', '--json', ...words], { env })
      const { database, environment } = JSON.parse(stdout) as Record<string, string>
      return [relative(realpathSync(folder.path), database!), environment]
    }
    // With the byte order mark that some editors write.
    folder.write('.env', '\uFEFFPETSTORE_ENVIRONMENT="production"\n# ours\nDATABASE_URL=sqlite:from-env-file.db\n')
    assert.deepEqual(await migrate({ DATABASE_URL: '' }), ['from-env-file.db', 'production'], 'empty counts as unset')
    const other = { DATABASE_URL: 'sqlite:from-variable.db', PETSTORE_ENVIRONMENT: 'staging' }
    assert.deepEqual(await migrate(other, '--database', 'sqlite:from-flag.db'), ['from-flag.db', 'staging'])
    folder.write('address', 'sqlite:from-secret-file.db\n')
    assert.deepEqual(await migrate({ DATABASE_URL_FILE: 'address' }), ['from-secret-file.db', 'production'])
  })

  it('reads from the .env file too what an address of PostgreSQL leaves out', async () => {
    await using folder = await Folder.create()
    await using database = await postgres.newEmptyDatabase()
    const { protocol, username, password, host, pathname } = new URL(database.url)
    const address = `DATABASE_URL=${protocol}//${host}`
    const leftOut = `PGUSER=${username}\nPGPASSWORD=${decodeURIComponent(password)}\nPGDATABASE=${pathname.slice(1)}`
    const migrate = (lines: string, env: Record<string, string> = {}) => {
      folder.write('.env', `${address}\n${lines}`)
      return folder.run(['migrate'], { env })
    }
    assert.equal((await migrate('')).code, 1)
    const { code, stderr } = await migrate(leftOut)
    assert.equal(code, 0, stderr)
    const other = await migrate(leftOut, { PGPASSWORD: 'other' })
    assert.match(other.stderr, /password authentication failed/, 'the environment wins over the file')
  })

  it('warns of a .env file that others can change, or that belongs to another user than root and its own', async () => {
    await using folder = await Folder.create()
    const warned = async (mode: number, owner?: number) => {
      const file = folder.write('.env', 'PETSTORE_SIGNUP=closed\n')
      chmodSync(file, mode)
      if (owner !== undefined) chownSync(file, owner, 0)
      const { code, stderr } = await folder.run(['--version'])
      assert.equal(code, 0)
      rmSync(file)
      return stderr
    }
    const warning = 'petstore: Warning: other users can change the settings in .env. To prevent that: '
    for (const mode of [0o620, 0o602]) assert.equal(await warned(mode), `${warning}chmod go-w .env\n`)
    assert.equal(await warned(0o644), '')
    // Only root can give a file away.
    if (process.getuid?.() === 0) assert.equal(await warned(0o600, 65_534), `${warning}chown 0 .env\n`)
  })

  it('warns of variables that are no setting', async () => {
    await using folder = await Folder.create()
    folder.write('.env', 'PETSTORE_ENVIROMENT=production\n')
    const inEnvironment =
      'petstore: Warning: the variable petstore_something_else is no setting and is ignored. See petstore help serve for all settings.\n'
    const warnings =
      'petstore: Warning: the variable PETSTORE_ENVIROMENT is no setting and is ignored. Did you mean PETSTORE_ENVIRONMENT?\n'
    const env = { petstore_something_else: '1' }
    const lines = (text: string) => text.split('\n').toSorted()
    const { stderr } = await folder.run(['openapi'], { env })
    assert.deepEqual(lines(stderr), lines(inEnvironment + warnings))
    const told = async (line: string) => {
      const options = { env: { ...env, PORT: '0', DATABASE_URL: 'sqlite::memory:' }, ...stopOnceServing() }
      return (await commands.call(0, line, options)).stderr
    }
    assert.equal(await told('serve'), inEnvironment)
    assert.equal(await told('help serve'), '')
  })

  it('does not start where the .env file can not be read: its settings are not guessed', async () => {
    await using folder = await Folder.create()
    const refusals: Record<string, [create: (path: string) => void, reason: string]> = {
      folder: [mkdirSync, 'it is a folder, a pipe or a device, not a regular file'],
      pipe: [(path) => execFileSync('mkfifo', [path]), 'it is a folder, a pipe or a device, not a regular file'],
      'link to a device': [(path) => symlinkSync('/dev/zero', path), 'it is a folder, a pipe or a device, not a'],
      'huge file': [
        (path) => writeFileSync(path, 'x\n'.repeat(600_000)),
        'it has 1200000 bytes, more than the allowed 1048576',
      ],
      'file in UTF-16, as > of Windows PowerShell writes it': [
        (path) => writeFileSync(path, '\uFEFFPORT=9000\r\n', 'utf16le'),
        'The encoded data was not valid for encoding utf-8',
      ],
    }
    for (const [what, [create, reason]] of Object.entries(refusals)) {
      create(folder.at('.env'))
      const { code, stdout, stderr } = await folder.run(['account', 'list'])
      assert.deepEqual([code, stdout], [2, ''], what)
      assert.ok(stderr.startsWith(`petstore: The file .env holds settings but cannot be read: ${reason}`), stderr)
      rmSync(folder.at('.env'), { recursive: true })
    }
  })

  it('reads no more of a password than it can refuse', async () => {
    await using folder = await Folder.create()
    const wrap = ['/bin/sh', '-c', 'exec "$0" "$@" < /dev/zero']
    const { code, stderr } = await folder.run(['account', 'create', EMAIL, '--password-stdin'], { wrap })
    assert.equal(code, 1)
    assert.match(stderr, /^petstore: The password must have at most 1024 characters, got 4\d{6}\.\n$/)
  })

  it('brings a database up to date with migrate, and says what it has created and applied', async () => {
    await using folder = await Folder.create()
    const database = `${realpathSync(folder.path)}/data/petstore.db`
    const created = `Created the database ${database}. It belongs to staging by default; to change that, set PETSTORE_ENVIRONMENT before it has keys or animals.\nApplied to ${database}: ${MIGRATION_NAMES}.\n`
    assert.deepEqual(await folder.commands.run('migrate'), { code: 0, stdout: '', stderr: created })
    assert.equal((await folder.commands.run('migrate')).stderr, `${database} was up to date.\n`)
    const facts = { database, environment: 'staging', created: false, migrations: [], warnings: [] }
    assert.deepEqual(await folder.commands.json('migrate'), facts)
    assert.deepEqual(await folder.commands.json('migrate --database sqlite:data/new.db'), {
      ...facts,
      database: database.replace('petstore.db', 'new.db'),
      created: true,
      migrations: MIGRATION_NAMES.split(', '),
    })
  })

  it('adds different animals with seed, some hundred at a time, which lets a running service write in between', async () => {
    await using database = await sqlite.newEmptyDatabase()
    const on = commandsOn(database.url)
    const { stderr } = await on.call(0, 'seed --count 1201', { isTTY: true })
    const steps = Array.from(stderr.matchAll(/ (\d+) of 1201/g), ([, added]) => Number(added))
    assert.deepEqual(steps, [500, 1000, 1201])
    assert.match(stderr, /\nAdded 1201 animals\.\n/)
    assert.deepEqual(await on.json('seed --count 1'), { added: 1 })
    const [pets] = await askDatabase(database.url, 'SELECT count(*) AS pets, count(DISTINCT name) AS names FROM pets')
    assert.equal(pets?.['pets'], 1202n)
    assert.ok((pets?.['names'] as bigint) > 10n, 'they differ')
    await askDatabase(database.url, `UPDATE sqlite_sequence SET seq = ${INT64_MAX} WHERE name = 'pets'`)
    await on.refused(1, 'seed --count 1', /^petstore: the disk is full, or no id is left .*\n$/)
  })

  it('prints the OpenAPI document, with the addresses it is told', async () => {
    const [production, staging] = ['https://pets.example/v1', 'https://staging.example/v1']
    const printed = async (options: string) => (await commands.call(0, `openapi${options}`)).stdout
    assert.equal(await printed(''), renderOpenapi())
    assert.equal(await printed(` --base-url ${production}`), renderOpenapi({ production }))
    const both = ` --base-url ${production} --staging-base-url ${staging}`
    assert.equal(await printed(both), renderOpenapi({ production, staging }))
  })

  for (const [what, line, count] of [
    ['leaves', 'openapi', 0],
    ['has read enough of an export, as head does', 'export - --format jsonl', 20_000],
  ] as const)
    it(`ends quietly where its reader ${what}`, async () => {
      await using folder = await Folder.create([BIN])
      if (count > 0) await folder.commands.call(0, `seed --count ${count}`)
      const child = folder.start(line.split(' '))
      const ended = collect(child)
      if (count > 0) await once(child.stdout!, 'data')
      child.stdout!.destroy()
      const { code, stderr } = await ended
      assert.deepEqual([code, stderr], [0, ''])
    })

  it('says in one line that its output can not be written', async () => {
    await using folder = await Folder.create([BIN])
    const run = (words: string) => folder.run([], { wrap: ['sh', '-c', `exec "$0" ${words}`] })
    const { code, stderr } = await run('openapi >/dev/full')
    assert.equal(code, 1)
    assert.match(stderr, /^petstore: The output cannot be written: ENOSPC.*\n$/)
    assert.equal((await run('purr 2>/dev/full')).code, 2)
  })
})

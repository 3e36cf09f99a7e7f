// bin/petstore as people and scripts call it: forms, output, messages and exit codes.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, realpathSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { findCommand } from '../src/cli/command.ts'
import { COMMANDS, commandsOf } from '../src/cli/commands.ts'
import { groupHelp, helpFor, overview } from '../src/cli/help.ts'
import { renderOpenapi } from '../src/contract/openapi.ts'
import { SETTINGS } from '../src/config.ts'
import { INT64_MAX } from '../src/contract/int64.ts'
import { postgres, sqlite, type TestDatabase } from '../assurance/harness/engines.ts'
import { collect } from '../assurance/harness/processes.ts'
import { BIN, Folder, makeKey, serve } from './command.ts'
import { MIGRATION_NAMES } from './database-schema.ts'
import { type InProcessOptions, petstore } from './in-process-command.ts'

const EMAIL = 'you@example.com'
const PASSWORD = 'correct horse battery'
/** Runs commands in this process, on this database. */
function commandsOn({ url }: TestDatabase) {
  return (words: readonly string[], { env, ...options }: InProcessOptions = {}) =>
    petstore(words, { ...options, env: { DATABASE_URL: url, ...env } })
}

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

describe('petstore account and key', { concurrency: 3 }, () => {
  it('make an account and a key, list them redacted, and print the secret once', async () => {
    await using database = await sqlite.newDatabase()
    const run = commandsOn(database)
    await run(['migrate', '--environment', 'staging'])
    const created = await run(['account', 'create', EMAIL, '--password-stdin', '--json'], {
      input: `${PASSWORD}\n`,
    })
    assert.equal(created.code, 0, created.stderr)
    const account = JSON.parse(created.stdout) as Record<string, string>
    assert.deepEqual(Object.keys(account), ['id', 'email', 'createdAt'])
    assert.equal(account['email'], EMAIL)
    assert.match(account['createdAt']!, ISO)

    const made = await run([
      'key',
      'create',
      '--account',
      'YOU@example.com',
      '--name',
      'laptop',
      '--expires',
      '90d',
      '--json',
    ])
    assert.equal(made.code, 0, made.stderr)
    assert.equal(made.stderr, '')
    const key = JSON.parse(made.stdout) as Record<string, string>
    assert.deepEqual(Object.keys(key), ['id', 'key', 'name', 'expiresAt'])
    assert.match(key['key']!, /^pets_test_[0-9A-Za-z]{36}$/)
    assert.ok(Math.abs(Date.parse(key['expiresAt']!) - Date.now() - 90 * 86_400_000) < 60_000)

    const plain = await run(['key', 'create', '--account', EMAIL, '--name', 'for people'])
    assert.match(plain.stdout, /^pets_test_[0-9A-Za-z]{36}\n$/, 'only the key goes to standard output')
    assert.match(plain.stderr, /It is shown only once: save it now\./)

    const listed = await run(['key', 'list', '--json'])
    const keys = JSON.parse(listed.stdout) as Record<string, unknown>[]
    assert.deepEqual(
      keys.map(({ name, state }) => [name, state]),
      [
        ['for people', 'active'],
        ['laptop', 'active'],
      ],
    )
    assert.equal(keys[1]!['redacted'], `pets_test_…${key['key']!.slice(-4)}`)
    assert.equal(keys[0]!['expiresAt'], null)
    const table = await run(['key', 'list', '--account', EMAIL])
    assert.equal(table.stdout.trimEnd().split('\n').length, 2)
    for (const { stdout, stderr } of [listed, table]) assert.ok(!(stdout + stderr).includes(key['key']!))

    const revoked = await run(['key', 'revoke', key['id']!])
    assert.deepEqual([revoked.code, revoked.stdout], [0, ''])
    assert.match(revoked.stderr, /^Revoked laptop \(key_\w+\)\.\n$/)
    const again = await run(['key', 'revoke', key['id']!, '--json'])
    assert.equal((JSON.parse(again.stdout) as { state: string }).state, 'revoked')

    const accounts = JSON.parse((await run(['account', 'list', '--json'])).stdout) as { email: string }[]
    assert.deepEqual(
      accounts.map(({ email }) => email),
      [EMAIL],
    )
  })

  it('change a password, and remove an account only with --yes', async () => {
    await using database = await sqlite.newDatabase()
    const run = commandsOn(database)
    await run(['account', 'create', EMAIL, '--password-stdin'], { input: PASSWORD })
    await run(['key', 'create', '--account', EMAIL, '--name', 'laptop'])
    const changed = await run(['account', 'password', EMAIL, '--password-stdin'], {
      input: 'another long password',
    })
    assert.deepEqual([changed.code, changed.stderr], [0, `Changed the password of ${EMAIL}.\n`])
    const asked = await run(['account', 'remove', EMAIL])
    assert.equal(asked.code, 2)
    assert.match(asked.stderr, /add --yes to confirm/)
    const removed = await run(['account', 'remove', EMAIL, '--yes', '--json'])
    assert.equal((JSON.parse(removed.stdout) as { email: string }).email, EMAIL)
    assert.deepEqual(JSON.parse((await run(['key', 'list', '--json'])).stdout), [])
  })

  it('say in one line what can not be done, with exit code 1', async () => {
    await using database = await sqlite.newDatabase()
    const run = commandsOn(database)
    await run(['migrate', '--environment', 'staging'])
    const failures: [words: string[], input: string, message: RegExp][] = [
      [
        ['account', 'create', 'nonsense', '--password-stdin'],
        PASSWORD,
        /^petstore: The email address must have the form name@host.*got "nonsense"\.\n$/,
      ],
      [
        ['account', 'create', EMAIL, '--password-stdin'],
        'short',
        /^petstore: The password must have at least 12 characters, got 5\.\n$/,
      ],
      [
        ['account', 'create', EMAIL, '--password-stdin'],
        'x'.repeat(1025),
        /^petstore: The password must have at most 1024 characters, got 1025\.\n$/,
      ],
      [
        ['account', 'password', EMAIL, '--password-stdin'],
        PASSWORD,
        /^petstore: There is no account for you@example.com in \/.*petstore\.db; see petstore account list --database sqlite:\/.*petstore\.db\n$/,
      ],
      [['key', 'create', '--account', EMAIL, '--name', 'x'], '', /^petstore: There is no account for you@example.com/],
      [
        ['key', 'revoke', 'key_none'],
        '',
        /^petstore: There is no key key_none in \/.*petstore\.db; see petstore key list --database sqlite:\/.*petstore\.db\n$/,
      ],
    ]
    await Promise.all(
      failures.map(async ([words, input, message]) => {
        const { code, stdout, stderr } = await run(words, { input })
        assert.deepEqual([code, stdout], [1, ''], words.join(' '))
        assert.match(stderr, message)
      }),
    )
    await run(['account', 'create', EMAIL, '--password-stdin'], { input: PASSWORD })
    const twice = await run(['account', 'create', EMAIL.toUpperCase(), '--password-stdin'], { input: PASSWORD })
    assert.equal(twice.code, 1)
    assert.match(twice.stderr, /There is already an account for YOU@EXAMPLE\.COM\./)
    const late = await run(['key', 'create', '--account', EMAIL, '--name', 'x', '--expires', '2020-01-01'])
    assert.deepEqual([late.code, late.stderr], [1, 'petstore: The expiry date must be in the future.\n'])
  })

  it('make a revoke seen by a running service within 5 seconds', async () => {
    await using folder = await Folder.create()
    const { id, key } = await makeKey(folder)
    const { url } = await serve(folder)
    const status = async () => (await fetch(`${url}/v1/pets`, { headers: { Authorization: `Bearer ${key}` } })).status
    assert.equal(await status(), 200)
    assert.equal((await folder.run(['key', 'revoke', id])).code, 0)
    const started = performance.now()
    while ((await status()) === 200) {
      assert.ok(performance.now() - started < 5000, 'still accepted after 5 seconds')
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    assert.equal(await status(), 401)
  })
})

describe('petstore', { concurrency: 3 }, () => {
  it('says its version and its help, which leads with examples', async () => {
    await using database = await sqlite.newDatabase()
    const run = commandsOn(database)
    assert.equal((await run(['--version'])).stdout, '1.0.0\n')
    for (const words of [[], ['help'], ['--help']]) {
      const { code, stdout, stderr } = await run(words)
      assert.deepEqual([code, stderr], [0, ''])
      assert.match(stdout, /^petstore 1\.0\.0: .*\n\nExamples\n {2}petstore serve/)
      for (const name of [
        'serve',
        'migrate',
        'account create',
        'account list',
        'account password',
        'account remove',
        'key create',
        'key list',
        'key revoke',
        'seed',
        'openapi',
        'help',
        '--version',
      ]) {
        assert.ok(stdout.includes(`\n  ${name}`), name)
      }
    }
    const serveHelp = (await run(['help', 'serve'])).stdout
    for (const { flag, value, variable, allowed, meaning } of Object.values(SETTINGS)) {
      for (const part of [`--${flag} ${value} `, meaning, allowed, variable])
        assert.ok(serveHelp.includes(part), `${flag}: ${part}`)
    }
    for (const words of [
      ['key', 'create', '--help'],
      ['key', 'create', '--name', 'x', '-h'],
      ['--help', 'key', 'create'],
      ['help', 'key', 'create'],
    ]) {
      const { code, stdout } = await run(words)
      assert.equal(code, 0)
      assert.match(stdout, /^petstore key create: .*\n\nExamples\n/)
    }
    for (const words of [
      ['help', 'key'],
      ['key', '--help'],
    ]) {
      assert.match(
        (await run(words)).stdout,
        /^petstore key: create, list, revoke\n\nExamples\n {2}petstore key create [^]*\n {2}key revoke +Revoke/,
      )
    }
    for (const words of [['help', 'help'], ['--help']])
      assert.match((await run(words)).stdout, /^petstore 1\.0\.0: .*\n\nExamples\n/)
  })

  it('names itself in hints as it was called', async () => {
    await using folder = await Folder.create([BIN])
    const { stderr } = await folder.run(['purr'], { env: { PATH: process.env['PATH']! } })
    assert.equal(stderr, `petstore: There is no command "purr".\nSee: ${BIN} help\n`)
    const helps = [
      overview(COMMANDS, 'bin/petstore'),
      groupHelp(commandsOf('key'), 'bin/petstore'),
      helpFor(findCommand(COMMANDS, ['serve'])!, 'bin/petstore'),
    ]
    for (const help of helps) {
      const [, examples = ''] = help.split('\n\n')
      assert.match(examples, /^Examples\n(?: {2}(?:\w+=\S+ )*bin\/petstore .*\n?)+$/, examples)
    }
  })

  it('creates no database where it only reads, and says by its whole path which one is missing', async () => {
    await using database = await sqlite.newDatabase()
    const run = commandsOn(database)
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
    for (const words of reading) {
      assert.deepEqual(
        await run(words.split(' '), { input: PASSWORD }),
        { code: 1, stdout: '', stderr: message },
        words,
      )
    }
    assert.deepEqual(readdirSync(dirname(path)), [])
    writeFileSync(path, '')
    assert.match((await run(['key', 'list'])).stderr, /There is no petstore database at \/.*petstore\.db/)
    assert.deepEqual(readdirSync(dirname(path)), ['petstore.db'])
  })

  it('tells a wrong call on standard error, where help is, and ends with 2', async () => {
    await using database = await sqlite.newDatabase()
    const run = commandsOn(database)
    const calls: [words: string[], message: RegExp][] = [
      [['purr'], /^petstore: There is no command "purr"\.\nSee: petstore help\n$/],
      [['help', 'purr'], /There is no command "purr"/],
      [['purr', '--help'], /There is no command "purr"/],
      [['help', 'key', 'purr'], /There is no command "key purr"\. There are key create, key list, key revoke\./],
      [['key'], /Which command\? key create, key list, key revoke\./],
      [
        ['serve', '--purr'],
        /^petstore: serve has no option --purr\. Did you mean --port\?\nSee: petstore help serve\n$/,
      ],
      [['serve', 'now'], /serve takes no arguments, got now\./],
      [['account', 'create'], /account create takes EMAIL, got none\./],
      [['account', 'create', EMAIL], /Give the password on standard input, with --password-stdin\./],
      [['key', 'create', '--name', 'x'], /Name the account that the key belongs to, with --account EMAIL\./],
      [['key', 'create', '--account', EMAIL], /Give the key a name, with --name NAME\./],
      [['key', 'create', '--account', EMAIL, '--name', 'x', '--expires', 'soon'], /--expires must be .*, got "soon"\./],
      [['seed'], /--count must be a whole number from 1 to 100000000, got nothing\./],
      [['seed', '--count', '1.5'], /--count must be .*, got "1\.5"\./],
      [['seed', '--count', '-5'], /--count must be a whole number from 1 to 100000000, got "-5"\./],
      [['seed', '--count'], /^petstore: --count needs a value: --count N\.\n/],
      [['seed', '--count', '--json'], /^petstore: --count needs a value: --count N\.\n/],
      [['key', 'list', '--json=yes'], /^petstore: --json takes no value, got "yes"\.\n/],
      [['key', 'list', '-x'], /^petstore: key list has no option -x\.\n/],
      [['srve'], /There is no command "srve"\. Did you mean serve\?/],
      [['key', 'lits'], /There is no command "key lits"\. Did you mean key list\?/],
      [['key', 'purr'], /There is no command "key purr"\. There are key create, key list, key revoke\./],
      [['keys', 'create'], /There is no command "keys"\. Did you mean key create\?/],
      [['keys', 'create', '--name', 'laptop'], /There is no command "keys"\. Did you mean key create\?/],
      [['keyz'], /There is no command "keyz"\. Did you mean key\?/],
      [['hlep'], /There is no command "hlep"\. Did you mean help\?/],
      [['completee'], /There is no command "completee"\.(?! Did you mean complete\?)/],
      [['serve', '--evironment', 'staging'], /serve has no option --evironment\. Did you mean --environment\?/],
      [['environment', 'set', 'live'], /NAME must be production or staging, got "live"\./],
      [['completion', 'tcsh'], /SHELL must be bash, zsh, fish, got "tcsh"\./],
      [['completion', 'constructor'], /SHELL must be bash, zsh, fish, got "constructor"\./],
      [
        ['key', 'create', '--account', EMAIL, '--name', 'x', '--expires', '2027-02-31'],
        /--expires must be .*, got "2027-02-31"\./,
      ],
      [
        ['key', 'create', '--account', EMAIL, '--name', 'x', '--expires', '100000000d'],
        /--expires must be .*, got "100000000d"\./,
      ],
    ]
    await Promise.all(
      calls.map(async ([words, message]) => {
        const { code, stdout, stderr } = await run(words)
        assert.deepEqual([code, stdout], [2, ''], words.join(' '))
        assert.match(stderr, message)
      }),
    )
  })

  it('names a bad setting, its value and what is allowed, whether flag, variable or .env', async () => {
    await using folder = await Folder.create()
    const flag = await petstore(['serve', '--port', '65536'])
    assert.equal(
      flag.stderr,
      'petstore: --port must be a port number from 0 to 65535 (0 picks a free one), got "65536".\nSee: petstore help serve\n',
    )
    const variable = await petstore(['serve'], { env: { PETSTORE_BASE_URL: 'https://pets.example' } })
    assert.match(
      variable.stderr,
      /^petstore: PETSTORE_BASE_URL must be an http or https URL that ends in \/v1, got "https:\/\/pets\.example"\./,
    )
    writeFileSync(join(folder.path, '.env'), 'PETSTORE_ENVIRONMENT=live\n')
    const file = await folder.run(['serve'])
    assert.match(file.stderr, /^petstore: PETSTORE_ENVIRONMENT must be production or staging, got "live"\./)
    assert.deepEqual([flag.code, variable.code, file.code], [2, 2, 2])
  })

  it('repeats no password of an address, wherever it was typed', async () => {
    await using folder = await Folder.create()
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
      assert.ok(
        code !== 0 && stdout === '' && stderr.startsWith('petstore: ') && !stderr.includes('hunter2'),
        `${words.join(' ')}: ${stderr}`,
      )
    }
    writeFileSync(join(folder.path, '.env'), `DATABASE_URL=${address}\n`)
    assert.match(
      (await folder.run(['serve'])).stderr,
      /^petstore: DATABASE_URL must be sqlite:PATH or postgres:\/\/USER:PASSWORD@HOST\/NAME, got "sqlite:…"\.\n/,
    )
  })

  it('reads a .env file; the environment wins over it, also in the other form of a setting, and a flag over both', async () => {
    await using folder = await Folder.create()
    const migrate = async (words: readonly string[] = [], env: Record<string, string> = {}) => {
      const { database, environment } = JSON.parse(
        (await folder.run(['migrate', '--json', ...words], { env })).stdout,
      ) as Record<string, string>
      return [relative(realpathSync(folder.path), database!), environment]
    }
    // With the byte order mark that some editors write.
    writeFileSync(
      join(folder.path, '.env'),
      '\uFEFFPETSTORE_ENVIRONMENT="production"\n# ours\nDATABASE_URL=sqlite:from-env-file.db\n',
    )
    assert.deepEqual(await migrate(), ['from-env-file.db', 'production'])
    const other = { DATABASE_URL: 'sqlite:from-variable.db', PETSTORE_ENVIRONMENT: 'staging' }
    assert.deepEqual(await migrate([], other), ['from-variable.db', 'staging'])
    assert.deepEqual(await migrate(['--database', 'sqlite:from-flag.db'], other), ['from-flag.db', 'staging'])
    assert.deepEqual(
      await migrate([], { DATABASE_URL: '' }),
      ['from-env-file.db', 'production'],
      'an empty variable counts as unset',
    )
    writeFileSync(join(folder.path, 'address'), 'sqlite:from-secret-file.db\n')
    assert.deepEqual(await migrate([], { DATABASE_URL_FILE: 'address' }), ['from-secret-file.db', 'production'])
    writeFileSync(join(folder.path, '.env'), 'DATABASE_URL_FILE=address\n')
    assert.deepEqual(await migrate([], other), ['from-variable.db', 'staging'])
    const both = await folder.run(['migrate'], { env: { ...other, DATABASE_URL_FILE: 'address' } })
    assert.match(both.stderr, /^petstore: Set DATABASE_URL or DATABASE_URL_FILE, not both\.\n/)
  })

  it('reads from the .env file too what an address of PostgreSQL leaves out', async () => {
    await using folder = await Folder.create()
    await using database = await postgres.newDatabase()
    const { protocol, username, password, host, pathname } = new URL(database.url)
    const address = `DATABASE_URL=${protocol}//${host}`
    const leftOut = [
      `PGUSER=${username}`,
      `PGPASSWORD=${decodeURIComponent(password)}`,
      `PGDATABASE=${pathname.slice(1)}`,
    ]
    const migrate = (lines: readonly string[]) => {
      writeFileSync(join(folder.path, '.env'), [address, ...lines].join('\n'))
      return folder.run(['migrate'])
    }
    for (const [index, line] of leftOut.entries())
      assert.equal((await migrate(leftOut.toSpliced(index, 1))).code, 1, `without ${line}`)
    const { code, stderr } = await migrate(leftOut)
    assert.equal(code, 0, stderr)
    const other = await folder.run(['migrate'], { env: { PGPASSWORD: 'other' } })
    assert.match(other.stderr, /password authentication failed/, 'the environment wins over the file')
  })

  it('warns of variables that are no setting, and of lines of the .env file that say nothing', async () => {
    await using folder = await Folder.create()
    writeFileSync(join(folder.path, '.env'), 'PETSTORE_ENVIROMENT=production\n\nPORT 9000\n')
    const warnings =
      'petstore: Warning: the variable petstore_something_else is no setting and is ignored. See petstore help serve for all settings.\n' +
      'petstore: Warning: the variable PETSTORE_ENVIROMENT is no setting and is ignored. Did you mean PETSTORE_ENVIRONMENT?\n' +
      'petstore: Warning: line 3 of the file .env is ignored: it is not NAME=VALUE.\n'
    const env = { petstore_something_else: '1' }
    const lines = (text: string) => text.split('\n').toSorted()
    for (const words of [['migrate', '--json'], ['openapi']])
      assert.deepEqual(lines((await folder.run(words, { env })).stderr.replace(/^Created.*\n/m, '')), lines(warnings))
    const served = await serve(folder, { env })
    served.child.kill('SIGTERM')
    assert.deepEqual(lines((await served.ended).stderr), lines(warnings))
    assert.equal((await folder.run(['help', 'serve'], { env })).stderr, '')
    assert.equal((await folder.run(['complete', 'bash', '1', 'se'], { env })).stderr, '', 'nor at each Tab')
  })

  it('reads no .env file but the one in the working directory', async () => {
    await using folder = await Folder.create()
    mkdirSync(join(folder.path, 'below'))
    writeFileSync(join(folder.path, '.env'), 'PETSTORE_ENVIRONMENT=nonsense\n')
    assert.equal((await folder.run(['openapi'])).code, 2)
    assert.equal((await folder.run(['openapi'], { wrap: ['env', '--chdir', 'below'] })).code, 0)
  })

  it('does not start where the .env file can not be read: its settings are not guessed', async () => {
    await using folder = await Folder.create()
    mkdirSync(join(folder.path, '.env'))
    const { code, stdout, stderr } = await folder.run(['account', 'list'])
    assert.deepEqual([code, stdout], [2, ''])
    assert.match(stderr, /^petstore: The file \.env holds settings but cannot be read: EISDIR.*\n$/)
  })

  it('adds animals with seed, and brings a database up to date with migrate', async () => {
    await using folder = await Folder.create()
    const database = join(realpathSync(folder.path), 'data/petstore.db')
    const created = `Created the database ${database}. It belongs to staging by default; to change that, set PETSTORE_ENVIRONMENT before it has keys or animals.\nApplied to ${database}: ${MIGRATION_NAMES}.\n`
    assert.deepEqual(await folder.runInProcess(['migrate']), { code: 0, stdout: '', stderr: created })
    assert.equal((await folder.runInProcess(['migrate'])).stderr, `${database} was up to date.\n`)
    assert.deepEqual(JSON.parse((await folder.runInProcess(['migrate', '--json'])).stdout), {
      database,
      environment: 'staging',
      created: false,
      migrations: [],
      warnings: [],
    })
    assert.deepEqual(await folder.runInProcess(['seed', '--count', '1201']), {
      code: 0,
      stdout: '',
      stderr: 'Added 1201 animals.\n',
    })
    assert.deepEqual(JSON.parse((await folder.runInProcess(['seed', '--count', '1', '--json'])).stdout), { added: 1 })
    const { key } = await makeKey(folder)
    const { url } = await serve(folder)
    const response = await fetch(`${url}/v1/pets?limit=100`, { headers: { Authorization: `Bearer ${key}` } })
    const pets = (await response.json()) as { id: number; name: string }[]
    assert.equal(pets[0]?.id, 1202)
    assert.ok(new Set(pets.map(({ name }) => name)).size > 10, 'they differ')
  })

  it('adds animals with seed some hundred at a time, which lets a running service write in between', async () => {
    await using database = await sqlite.newDatabase()
    const { stderr } = await petstore(['seed', '--count', '1201', '--database', database.url], { isTTY: true })
    const steps = Array.from(stderr.matchAll(/ (\d+) of 1201/g), ([, added]) => Number(added))
    assert.deepEqual(steps, [500, 1000, 1201])
  })

  it('adds one animal at least with seed, and creates no database for less', async () => {
    await using database = await sqlite.newDatabase()
    for (const count of ['0', '100000001']) {
      const { code, stderr } = await petstore(['seed', '--count', count, '--database', database.url])
      assert.equal(code, 2)
      assert.match(stderr, new RegExp(`--count must be a whole number from 1 to 100000000, got "${count}"\\.`))
    }
    assert.ok(!existsSync(database.url.slice('sqlite:'.length)))
  })

  it('says in JSON whether migrate has created the database, and what it has applied', async () => {
    await using database = await sqlite.newDatabase()
    const migrate = async () => (await petstore(['migrate', '--json', '--database', database.url])).stdout
    const path = database.url.slice('sqlite:'.length)
    const expected = { database: path, environment: 'staging' }
    assert.deepEqual(JSON.parse(await migrate()), {
      ...expected,
      created: true,
      migrations: MIGRATION_NAMES.split(', '),
      warnings: [],
    })
    assert.deepEqual(JSON.parse(await migrate()), { ...expected, created: false, migrations: [], warnings: [] })
  })

  it('says in one line that the database cannot do what it should', async () => {
    await using database = await sqlite.newDatabase()
    const add = () => petstore(['seed', '--count', '1', '--database', database.url])
    assert.equal((await add()).code, 0)
    {
      using other = new DatabaseSync(database.url.slice('sqlite:'.length))
      other.exec(`UPDATE sqlite_sequence SET seq = ${INT64_MAX} WHERE name = 'pets'`)
    }
    const { code, stdout, stderr } = await add()
    assert.deepEqual([code, stdout], [1, ''])
    assert.match(stderr, /^petstore: the disk is full, or no id is left .*\n$/)
  })

  it('prints the OpenAPI document, with the addresses it is told', async () => {
    assert.equal((await petstore(['openapi'])).stdout, renderOpenapi())
    const { stdout } = await petstore(['openapi', '--base-url', 'https://pets.example/v1'])
    assert.equal(stdout, renderOpenapi({ production: 'https://pets.example/v1' }))
    const both = { production: 'https://pets.example/v1', staging: 'https://staging.example/v1' }
    const { stdout: withBoth } = await petstore([
      'openapi',
      '--base-url',
      both.production,
      '--staging-base-url',
      both.staging,
    ])
    assert.equal(withBoth, renderOpenapi(both))
  })

  it('ends quietly where its reader leaves', async () => {
    await using folder = await Folder.create([BIN])
    const child = folder.start(['openapi'])
    const ended = collect(child)
    child.stdout!.destroy()
    const { code, stderr } = await ended
    assert.deepEqual([code, stderr], [0, ''])
  })

  it('ends an export quietly where its reader has read enough, as head does', async () => {
    await using folder = await Folder.create([BIN])
    await folder.runInProcess(['seed', '--count', '20000'])
    const child = folder.start(['export', '-', '--format', 'jsonl'])
    const ended = collect(child)
    await once(child.stdout!, 'data')
    child.stdout!.destroy()
    const { code, stderr } = await ended
    assert.deepEqual([code, stderr], [0, ''])
  })

  it('says in one line that its output can not be written', async () => {
    await using folder = await Folder.create([BIN])
    for (const words of ['openapi', 'help']) {
      const { code, stderr } = await folder.run([], { wrap: ['sh', '-c', `exec "$0" ${words} >/dev/full`] })
      assert.equal(code, 1, words)
      assert.match(stderr, /^petstore: The output cannot be written: ENOSPC.*\n$/)
    }
    const silent = await folder.run([], { wrap: ['sh', '-c', 'exec "$0" purr 2>/dev/full'] })
    assert.equal(silent.code, 2)
  })
})

// petstore account and petstore key: what they store and show, to the line, the millisecond and the column.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { verifyPassword } from '../../src/accounts/passwords.ts'
import { ENGINES, postgres, sqlite } from '../harness/databases/engines.ts'
import { atTerminal, Folder, hasTerminal } from '../harness/programs/command.ts'
import { type Commands, commandsOn, type InProcessOptions, petstore } from '../harness/programs/in-process-command.ts'
import { withStore } from '../harness/databases/with-store.ts'

const EMAIL = 'you@example.com'
const PASSWORD = 'correct horse battery'
const NOW = Date.UTC(2026, 10, 15, 12)
const HOUR = 3_600_000
const CREATE_KEY = `key create --account ${EMAIL} --name laptop`
const at = (hours: number): InProcessOptions => ({ clock: () => NOW + hours * HOUR })
const iso = (hours: number) => new Date(NOW + hours * HOUR).toISOString()

interface Store {
  commands: Commands
  url: string
  path: string
  /** Runs a command, at NOW unless told otherwise; ids and secrets are replaced by their kinds. */
  told: (line: string, options?: InProcessOptions) => Promise<[code: number, stdout: string, stderr: string]>
  /** Runs statements, as another process would. */
  elsewhere: (sql: string) => void
}

/** Runs commands on an empty database; a password is on their standard input. */
async function withCommands(work: (store: Store) => Promise<void>): Promise<void> {
  await using database = await sqlite.newEmptyDatabase()
  const { url } = database
  const path = url.slice('sqlite:'.length)
  const commands = commandsOn(url, { input: PASSWORD, ...at(0) })
  const plain = (text: string) =>
    text.replaceAll(/(acct|key)_\w{10,}/g, '$1_…').replaceAll(/pets_test_[\w…]+/g, 'pets_test_…')
  await work({
    commands,
    url,
    path,
    told: async (line, options) => {
      const { code, stdout, stderr } = await commands.run(line, options)
      return [code, plain(stdout), plain(stderr)]
    },
    elsewhere: (sql) => {
      using other = new DatabaseSync(path)
      other.exec(sql)
    },
  })
}

/** The same, with the account of EMAIL. */
function withAccount(work: (store: Store) => Promise<void>): Promise<void> {
  return withCommands(async (store) => {
    await store.commands.call(0, 'migrate --environment staging')
    await store.commands.call(0, `account create ${EMAIL} --password-stdin`)
    await work(store)
  })
}

/** Whether the account's password is this one. */
async function hasPassword(url: string, password: string): Promise<boolean> {
  const account = await withStore(url, ({ accounts }) => accounts.accountByEmail(EMAIL))
  return verifyPassword(password, account?.passwordHash)
}

describe('petstore key', () => {
  it('create prints the secret once, and no other command prints it', () =>
    withAccount(async ({ commands, told }) => {
      const made = await commands.call(0, CREATE_KEY)
      assert.match(made.stdout, /^pets_test_[0-9A-Za-z]{36}\n$/, 'only the key goes to standard output')
      assert.match(made.stderr, /^Created the key laptop \(key_\w+\)\. It is shown only once: save it now\.\n$/)
      const json = await commands.json(`key create --account ${EMAIL.toUpperCase()} --name=--dashed`)
      assert.deepEqual(Object.keys(json), ['id', 'key', 'name', 'expiresAt'])
      assert.match(String(json['key']), /^pets_test_[0-9A-Za-z]{36}$/)
      assert.deepEqual([json['name'], json['expiresAt']], ['--dashed', null])
      for (const line of ['key list', 'key list --json', `key revoke ${String(json['id'])}`]) {
        const { stdout, stderr } = await commands.call(0, line)
        for (const secret of [made.stdout.trim(), String(json['key'])]) assert.ok(!(stdout + stderr).includes(secret))
      }
      const late = await told(`${CREATE_KEY} --expires 2020-01-01`)
      assert.deepEqual(late, [1, '', 'petstore: The expiry date must be in the future.\n'])
    }))

  it('create takes a time or a date to expire, and the key ends at that exact time', () =>
    withAccount(async ({ commands }) => {
      for (const [expires, end] of [
        ['12h', NOW + 12 * HOUR],
        ['90d', NOW + 90 * 24 * HOUR],
        ['4w', NOW + 28 * 24 * HOUR],
        ['2027-01-31', Date.UTC(2027, 0, 31)],
      ] as const) {
        const made = await commands.json(`${CREATE_KEY} --expires ${expires}`)
        assert.equal(made['expiresAt'], new Date(end).toISOString())
        for (const [time, state] of [
          [end - 1, 'active'],
          [end, 'expired'],
        ] as const) {
          const keys = await commands.json<{ id: string; state: string }[]>('key list', { clock: () => time })
          assert.equal(keys.find(({ id }) => id === made['id'])?.state, state, expires)
        }
      }
      const wrong = '0d 12 1y x90d 90dx 100000000d soon 2027-02-31 12027-01-31 2027-01-31T00'.split(' ')
      for (const expires of wrong)
        await commands.refused(
          2,
          `${CREATE_KEY} --expires ${expires}`,
          `petstore: --expires must be hours, days or weeks (12h, 90d, 4w) or a date such as 2027-01-31, got "${expires}".\nSee: petstore help key create\n`,
        )
    }))

  it('revoke takes the name of one active key, and never the key itself; a second key of a name is asked about', () =>
    withAccount(async ({ commands, told }) => {
      const { id, key } = await commands.json(CREATE_KEY)
      await commands.refused(
        1,
        `key revoke ${String(key)}`,
        /no active key pets_test_… in .*by its id, which is not the key itself/,
      )
      const question = `There is an active key laptop (${String(id)}) already. Generate another with this name? [y/N] `
      const asked = await commands.call(1, CREATE_KEY, { typed: 'n\n' })
      assert.deepEqual([asked.stdout, asked.stderr], ['', `${question}petstore: No key was generated.\n`])
      assert.match((await commands.call(0, CREATE_KEY, { typed: 'y\n' })).stdout, /^pets_test_/)
      await commands.refused(1, 'key revoke laptop', /: 2 active keys have the name laptop in .*Name one by its id/)
      await commands.call(0, `key revoke ${String(id)}`)
      assert.deepEqual(await told('key revoke laptop'), [0, '', 'Revoked laptop (key_…).\n'])
      // Nobody is asked in a script, or about the name of a revoked key.
      await commands.call(0, CREATE_KEY)
      await commands.call(0, CREATE_KEY)
    }))

  it('list and revoke show each key redacted, of one account or of all, with its state and times', () =>
    withAccount(async ({ commands, told, url, path }) => {
      await commands.call(0, 'account create other@example.com --password-stdin')
      const { id: mine, key } = await commands.json(`${CREATE_KEY} --expires 2w`)
      const { id: other } = await commands.json('key create --account other@example.com --name ci', at(1))
      await withStore(url, ({ accounts }) => accounts.recordUsage([], new Map([[String(mine), NOW + HOUR]])))
      assert.deepEqual(await told('key list'), [
        0,
        'key_…  other@example.com  ci      pets_test_…  active  2026-11-15 13:00 UTC  -                     -\n' +
          'key_…  you@example.com    laptop  pets_test_…  active  2026-11-15 12:00 UTC  2026-11-15 13:00 UTC  2026-11-29 12:00 UTC\n',
        '',
      ])
      assert.deepEqual(await told(`key revoke ${String(mine)}`, at(2)), [0, '', 'Revoked laptop (key_…).\n'])
      const again = `key revoke ${String(mine)}`
      assert.deepEqual(await told(again, at(3)), [0, '', 'laptop (key_…) was already revoked.\n'])
      const revoked = {
        id: mine,
        account: EMAIL,
        name: 'laptop',
        redacted: `pets_test_…${String(key).slice(-4)}`,
        state: 'revoked',
        createdAt: iso(0),
        lastUsedAt: iso(1),
        expiresAt: iso(14 * 24),
        revokedAt: iso(2),
      }
      assert.deepEqual(await commands.json(again), revoked)
      assert.deepEqual(await commands.json(`key list --account ${EMAIL}`), [revoked])
      const [listed] = await commands.json<object[]>('key list --account other@example.com')
      assert.partialDeepStrictEqual(listed, { id: other, state: 'active', lastUsedAt: null, revokedAt: null })
      const all = await commands.json<{ name: string }[]>('key list')
      assert.deepEqual([all.length, all[0]?.name, all[1]?.name], [2, 'ci', 'laptop'])
      await commands.refused(
        1,
        'key revoke key_none',
        `petstore: There is no active key key_none in ${path}. Name one by its id, which is not the key itself; see petstore key list --database ${url}\n`,
      )
      for (const words of ['', ' --json'])
        await commands.refused(
          1,
          `key list --account me@example.com${words}`,
          /^petstore: There is no account for me@ex/,
        )
    }))
})

describe('petstore account', () => {
  it('create says what it has made and what comes next, and in one line what it refuses', () =>
    withCommands(async ({ commands, told, path, url }) => {
      const create = `account create ${EMAIL} --password-stdin`
      const refusals: [input: string, line: string, message: string | RegExp][] = [
        ['short', create, 'petstore: The password must have at least 12 characters, got 5.\n'],
        ['x'.repeat(1025), create, 'petstore: The password must have at most 1024 characters, got 1025.\n'],
        [
          PASSWORD,
          'account create nonsense --password-stdin',
          /^petstore: The email address must have the form name@host.*got "nonsense"\.\n$/,
        ],
      ]
      for (const [input, line, message] of refusals) await commands.refused(1, line, message, { input })
      assert.deepEqual(await told(create), [
        0,
        `Created the account ${EMAIL} (acct_…).\n`,
        `Created the database ${path}. It belongs to staging by default; to change that, set PETSTORE_ENVIRONMENT before it has keys or animals.\n` +
          `Next: petstore key create --account ${EMAIL} --name NAME --database ${url}\n`,
      ])
      const taken = `account create ${EMAIL.toUpperCase()} --password-stdin`
      const message = 'petstore: There is already an account for YOU@EXAMPLE.COM.\n'
      await commands.refused(1, taken, message, { input: '' })
      const { id, ...other } = await commands.json('account create b@example.com --password-stdin')
      assert.match(String(id), /^acct_\w{16}$/)
      assert.deepEqual(other, { email: 'b@example.com', name: null, createdAt: iso(0), role: 'member' })
    }))

  it('list shows each account, or what to do next where there is nothing to list', () =>
    withCommands(async ({ commands, told, path, url }) => {
      await commands.call(0, 'migrate')
      const next = {
        'account list': `No accounts yet in ${path}. Create one: petstore account create EMAIL`,
        'key list': `No keys yet in ${path}. Generate one: petstore key create --account EMAIL --name NAME`,
      }
      for (const [line, message] of Object.entries(next)) {
        assert.deepEqual(await told(line), [0, '', `${message} --database ${url}\n`])
        assert.equal((await commands.call(0, `${line} --json`)).stdout, '[]\n')
      }
      for (const [index, words] of ['a@example.com', 'b@example.com --name Ben'].entries())
        await commands.call(0, `account create ${words} --password-stdin`, at(index))
      const rows =
        'acct_…  a@example.com  –    2026-11-15 12:00 UTC  Manager\nacct_…  b@example.com  Ben  2026-11-15 13:00 UTC  Member\n'
      assert.deepEqual(await told('account list'), [0, rows, ''])
      const listed = await commands.json<{ email: string; name: string | null; createdAt: string }[]>('account list')
      assert.deepEqual(
        listed.map(({ email, name, createdAt }) => [email, name, createdAt]),
        [
          ['a@example.com', null, iso(0)],
          ['b@example.com', 'Ben', iso(1)],
        ],
      )
      for (const [name, message] of [
        ['BEN', /^petstore: Somebody here is called BEN already: /],
        ['You', /^petstore: "You" would be misunderstood\. /],
      ] as const)
        await commands.refused(1, `account create c@example.com --name ${name} --password-stdin`, message)
      assert.match((await told('key list --account a@example.com'))[2], /petstore key create --account a@example\.com /)
    }))

  it('password and remove change the account that they name, and no other; remove only with --yes', () =>
    withAccount(async ({ commands, told, path, url }) => {
      await commands.call(0, 'account create b@example.com --password-stdin')
      await commands.call(0, CREATE_KEY)
      const password = `account password ${EMAIL} --password-stdin`
      const changed = await told(password, { input: `${PASSWORD} staple` })
      assert.deepEqual(changed, [0, '', `Changed the password of ${EMAIL}.\n`])
      await commands.refused(1, password, /^petstore: The password must have at least 12 characters/, {
        input: 'short',
      })
      await commands.refused(1, 'account remove none@b.de', /^petstore: There is no account for none@b\.de in /)
      await commands.refused(2, `account remove ${EMAIL}`, /for good; add --yes to confirm\.\n/)
      await commands.call(0, 'account manager b@example.com')
      const removed = [0, '', `Removed the account ${EMAIL} and its keys.\n`]
      assert.deepEqual(await told(`account remove ${EMAIL} --yes`), removed)
      const missing = `petstore: There is no account for ${EMAIL} in ${path}; see petstore account list --database ${url}\n`
      for (const line of [password, `account remove ${EMAIL} --yes`, CREATE_KEY])
        await commands.refused(1, line, missing)
      assert.deepEqual(await commands.json('key list'), [])
      assert.partialDeepStrictEqual(await commands.json('account remove b@example.com --yes'), {
        email: 'b@example.com',
      })
      assert.deepEqual(await commands.json('account list'), [])
      assert.deepEqual(readdirSync(dirname(path)), ['petstore.db'], 'after success and failure there is only the file')
    }))

  for (const engine of ENGINES) {
    it(`suggests commands that a shell takes as they are printed, whatever they name, on ${engine.name}`, async () => {
      await using database = await engine.newEmptyDatabase()
      const address = database.url.replace(/petstore\.db$/, "my $data/me@corp/it's.db").replace(/:[^/@]*@(?!corp)/, '@')
      if (engine === postgres) process.env['PGPASSWORD'] = decodeURIComponent(new URL(database.url).password)
      const email = "o'neil&co@b.de"
      const run = async (words: readonly string[], code = 0) => {
        const ended = await petstore(words, { input: PASSWORD })
        assert.equal(ended.code, code, `${words.join(' ')}: ${ended.stderr}`)
        return ended
      }
      /** Splits the last command of a message as a shell does, and fills in its placeholders. */
      const suggested = ({ stderr }: { stderr: string }): string[] => {
        const line = /.*(?:: |see )petstore (.*)\n$/s.exec(stderr)?.[1] ?? assert.fail(stderr)
        const { stdout } = spawnSync('sh', ['-c', `printf '%s\\n' ${line}`], { encoding: 'utf8' })
        const words = stdout.trimEnd().split('\n')
        return words.map((word) => ({ EMAIL: email, NAME: "a shop's till" })[word] ?? word)
      }
      const on = ['--database', address]
      await run(['migrate', ...on])
      const created = await run([...suggested(await run(['account', 'list', ...on])), '--password-stdin'])
      await run([...suggested(await run(['key', 'list', '--account', email, ...on])), '--json'])
      assert.match((await run(suggested(created))).stderr, /^Created the key a shop's till \(key_/)
      for (const line of ['key list --account none@b.de', 'key revoke none']) {
        const { stdout } = await run(suggested(await run([...line.split(' '), ...on], 1)))
        assert.ok(stdout.includes(email), stdout)
      }
    })
  }

  it('suggests a command that works also for an email address that begins with a dash', () =>
    withAccount(async ({ commands }) => {
      const suggested: string[] = []
      for (const line of ['account create --password-stdin -- -x@y.z', 'key list --account=-x@y.z']) {
        const { stderr } = await commands.call(0, line)
        const next = /: petstore (key create .*)\n$/.exec(stderr)?.[1]?.replaceAll("'", '') ?? assert.fail(stderr)
        suggested.push(next)
      }
      for (const next of suggested) assert.match((await commands.call(0, next)).stderr, /^Created the key NAME \(/)
    }))

  it('suggests a placeholder for an email address that looks like a password', () =>
    withAccount(async ({ commands }) => {
      for (const email of ['a:b@c.d', '-a:b@c.d']) {
        const { stderr } = await commands.call(0, `account create --password-stdin -- ${email}`)
        assert.match(stderr, /: petstore key create --account EMAIL --name NAME /, email)
      }
    }))

  it('keeps in the security log what was done with an account on the command line, and when', () =>
    withAccount(async ({ commands, url }) => {
      const { id } = await commands.json(CREATE_KEY, at(1))
      await commands.call(0, `key revoke ${String(id)}`, at(2))
      const account = await commands.json(`account password ${EMAIL} --password-stdin`, at(3))
      assert.deepEqual([account['email'], account['createdAt']], [EMAIL, iso(0)])
      await commands.call(0, `account remove ${EMAIL} --yes`, at(4))
      const events = await withStore(url, ({ accounts }) => accounts.auditTrail(String(account['id']), 100))
      assert.deepEqual(
        events.map((event) => [event.action, event.subject, event.via, (event.at - NOW) / HOUR]),
        [
          ['account.removed', EMAIL, 'command line', 4],
          ['account.password_changed', EMAIL, 'command line', 3],
          ['key.revoked', `laptop (${String(id)})`, 'command line', 2],
          ['key.created', `laptop (${String(id)})`, 'command line', 1],
          ['account.created', EMAIL, 'command line', 0],
        ],
      )
    }))
  it('keeps a password that was changed elsewhere while this change was being made, and says so', () =>
    withAccount(async ({ commands, elsewhere, url }) => {
      const change = `account password ${EMAIL} --password-stdin`
      const input = 'one long password'
      const clock = () => {
        elsewhere("UPDATE accounts SET password_hash = 'changed'")
        return NOW
      }
      await commands.refused(1, change, 'petstore: The password was changed meanwhile. Try again.\n', { input, clock })
      await commands.call(0, change, { input })
      assert.ok(await hasPassword(url, input))
    }))

  for (const line of [CREATE_KEY, `account password ${EMAIL} --password-stdin`]) {
    it(`that is removed elsewhere during ${line.split(' -')[0]} is told as gone`, () =>
      withAccount(async ({ commands, elsewhere }) => {
        const clock = () => {
          elsewhere('DELETE FROM accounts')
          return NOW
        }
        const gone = `petstore: There is no account for ${EMAIL}: it was removed meanwhile.\n`
        await commands.refused(1, line, gone, { clock })
      }))
  }

  it('takes the password from standard input, without a byte order mark and the line feed that ends it, and with all else', () =>
    withAccount(async ({ commands, url }) => {
      assert.ok(await hasPassword(url, PASSWORD))
      for (const [input, password] of [
        ['one long password\n', 'one long password'],
        ['two long passwords\r\n', 'two long passwords'],
        ['  kept as it is \n\n', '  kept as it is \n'],
        ['\uFEFFthree long passwords\n', 'three long passwords'],
      ] as const) {
        await commands.call(0, `account password ${EMAIL} --password-stdin`, { input })
        assert.ok(await hasPassword(url, password), JSON.stringify(input))
      }
      assert.ok(!(await hasPassword(url, PASSWORD)))
    }))

  it('checks the email address, and whether it is taken, before it asks for a password', () =>
    withAccount(async ({ commands }) => {
      const answers: [line: string, message: RegExp][] = [
        ['account create nonsense', /^petstore: The email address must have the form .*\n$/],
        [`account create ${EMAIL.toUpperCase()}`, /^petstore: There is already an account for YOU@EXAMPLE\.COM\.\n$/],
        ['account password other@example.com', /^petstore: There is no account for other@example\.com .*\n$/],
      ]
      for (const [line, message] of answers) await commands.refused(1, line, message, { typed: '' })
    }))
})

describe('petstore account create on a terminal', { skip: !hasTerminal }, () => {
  const asked = 'Password (at least 12 characters): '
  const again = 'The same password again: '

  it('states the rule, asks twice and again where the first is none or the two differ, and does not show what is typed', async () => {
    await using folder = await Folder.create()
    const { code, stdout } = await atTerminal(folder, `account create ${EMAIL}`, {
      [asked]: ['short\r', `${PASSWORD}\r`, `${PASSWORD}\r`],
      [again]: ['correct horse batteries\r', `${PASSWORD}\r`],
    })
    assert.equal(code, 0, stdout)
    assert.ok(!stdout.includes(PASSWORD))
    assert.match(
      stdout.replaceAll('\r', ''),
      /^There is no store .*\nPassword .*\nThe password must have at least 12 characters, got 5\.\nPassword .*\nThe same .*\nThe two passwords differ; try again\.\nPassword .*\nThe same .*\nCreated the database \/.*petstore\.db\. It belongs to staging .*\s*Created the account you@example\.com/,
    )
    assert.ok(await hasPassword(`sqlite:${folder.at('data/petstore.db')}`, PASSWORD))
  })

  for (const [name, answers, shown] of [
    ['Ctrl-C at the first question', { [asked]: '\u0003' }, asked],
    ['Ctrl-D at the second', { [asked]: `${PASSWORD}\r`, [again]: '\u0004' }, `${asked}${again}`],
  ] as const)
    it(`ends silently with 130 at ${name}`, async () => {
      await using folder = await Folder.create()
      const { code, stdout } = await atTerminal(folder, `account create ${EMAIL}`, answers)
      const text = stdout.replace(/^.*\[y\/N\] y/, '').replaceAll(/\s+/g, ' ')
      assert.deepEqual([code, text.trim(), folder.names()], [130, shown.trimEnd(), []])
    })
})

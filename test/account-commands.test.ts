// What the account and key commands store and show, to the millisecond and the column.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import { verifyPassword } from '../src/accounts/passwords.ts'
import { readConfig } from '../src/config.ts'
import { openStore } from '../src/store/open-store.ts'
import type { Ended } from '../assurance/harness/processes.ts'
import { atTerminal, Folder, hasTerminal } from './command.ts'
import { ENGINES, postgres } from '../assurance/harness/engines.ts'
import { type InProcessOptions, petstore } from './in-process-command.ts'

const EMAIL = 'you@example.com'
const PASSWORD = 'correct horse battery'
const NOW = Date.UTC(2026, 10, 15, 12)
const HOUR = 3_600_000

/** A database with the account of EMAIL, and commands on it, at NOW unless told otherwise. */
async function withAccount(
  work: (run: (words: string, options?: InProcessOptions) => Promise<string>, url: string) => Promise<void>,
): Promise<void> {
  await using database = await ENGINES[0]!.newDatabase()
  const run = async (words: string, options: InProcessOptions = {}) => {
    const { code, stdout, stderr } = await petstore([...words.split(' '), '--database', database.url], {
      clock: () => NOW,
      ...options,
    })
    assert.equal(code, 0, stderr)
    return stdout
  }
  await run('migrate --environment staging')
  await run(`account create ${EMAIL} --password-stdin`, { input: PASSWORD })
  await work(run, database.url)
}

describe('petstore key', () => {
  const expiries: Record<string, number> = {
    '12h': NOW + 12 * HOUR,
    '90d': NOW + 90 * 24 * HOUR,
    '4w': NOW + 28 * 24 * HOUR,
    '2027-01-31': Date.UTC(2027, 0, 31),
  }
  for (const [expires, expected] of Object.entries(expiries)) {
    it(`makes a key that ends with --expires ${expires} at its exact time`, () =>
      withAccount(async (run) => {
        const made = await run(`key create --account ${EMAIL} --name x --expires ${expires} --json`)
        const { id, expiresAt } = JSON.parse(made) as { id: string; expiresAt: string }
        assert.equal(expiresAt, new Date(expected).toISOString())
        const stateAt = async (time: number) =>
          (JSON.parse(await run('key list --json', { clock: () => time })) as { id: string; state: string }[])[0]
        assert.deepEqual(
          [(await stateAt(expected - 1))?.state, (await stateAt(expected))?.state],
          ['active', 'expired'],
        )
        assert.equal((await stateAt(NOW))?.id, id)
      }))
  }

  it('takes a value that starts with a dash after an equals sign', () =>
    withAccount(async (run) => {
      const { name } = JSON.parse(await run(`key create --account=${EMAIL} --name=--dashed --json`)) as { name: string }
      assert.equal(name, '--dashed')
    }))

  it('lists the keys of one account, or of all, with when they were revoked', () =>
    withAccount(async (run, url) => {
      await run('account create other@example.com --password-stdin', { input: PASSWORD })
      const { id } = JSON.parse(await run(`key create --account ${EMAIL} --name mine --json`)) as { id: string }
      await run('key create --account other@example.com --name other', { clock: () => NOW + 1 })
      const revoke = (clock: () => number) => petstore(['key', 'revoke', id, '--database', url], { clock })
      assert.equal((await revoke(() => NOW + HOUR)).stderr, `Revoked mine (${id}).\n`)
      assert.equal((await revoke(() => NOW + 2 * HOUR)).stderr, `mine (${id}) was already revoked.\n`)
      const list = async (words = '') => JSON.parse(await run(`key list --json${words}`)) as Record<string, unknown>[]
      assert.deepEqual(
        (await list()).map(({ name }) => name),
        ['other', 'mine'],
      )
      assert.deepEqual(
        (await list(' --account other@example.com')).map(({ name }) => name),
        ['other'],
      )
      const [{ redacted, ...mine }] = (await list(` --account ${EMAIL}`)) as [Record<string, unknown>]
      assert.match(String(redacted), /^pets_test_…\w{4}$/)
      const at = (time: number) => new Date(time).toISOString()
      assert.deepEqual(mine, {
        id,
        account: EMAIL,
        name: 'mine',
        state: 'revoked',
        createdAt: at(NOW),
        lastUsedAt: null,
        expiresAt: null,
        revokedAt: at(NOW + HOUR),
      })
    }))

  it('lists no key of others for an account that does not exist', () =>
    withAccount(async (run, url) => {
      await run(`key create --account ${EMAIL} --name mine`)
      for (const words of [[], ['--json']]) {
        const listed = await petstore(['key', 'list', '--account', 'me@example.com', '--database', url, ...words])
        assert.deepEqual([listed.code, listed.stdout], [1, ''])
        assert.match(listed.stderr, /^petstore: There is no account for me@example\.com in /)
      }
    }))

  it('shows when a key was last used, and as revoked from the answer to its revocation on', () =>
    withAccount(async (run, url) => {
      const { id } = JSON.parse(await run(`key create --account ${EMAIL} --name mine --json`)) as { id: string }
      const store = await openStore(readConfig({ database: url }, {}).database)
      await store.accounts.recordUsage([], new Map([[id, NOW + HOUR]]))
      await store.close()
      const at = (time: number) => new Date(time).toISOString()
      const revoked = JSON.parse(await run(`key revoke ${id} --json`, { clock: () => NOW + 2 * HOUR })) as object
      assert.partialDeepStrictEqual(revoked, {
        account: EMAIL,
        state: 'revoked',
        lastUsedAt: at(NOW + HOUR),
        revokedAt: at(NOW + 2 * HOUR),
      })
      assert.deepEqual(JSON.parse(await run('key list --json')), [revoked])
    }))

  it('shows a person a table with a heading, its columns aligned', () =>
    withAccount(async (run) => {
      await run(`key create --account ${EMAIL} --name x`)
      await run(`key create --account ${EMAIL} --name longer --expires 12h`, { clock: () => NOW + 1 })
      const [heading, ...rows] = stripVTControlCharacters(await run('key list', { isTTY: true }))
        .trimEnd()
        .split('\n')
      assert.match(heading!, /^Id +Account +Name {4}Key +State {3}Created {15}Last used {2}Expires$/)
      const cells = rows.map((row) => row.split(/ {2,}/).slice(2))
      assert.deepEqual(
        cells.map(([name, , ...rest]) => [name, ...rest]),
        [
          ['longer', 'active', '2026-11-15 12:00 UTC', '-', '2026-11-16 00:00 UTC'],
          ['x', 'active', '2026-11-15 12:00 UTC', '-', '-'],
        ],
      )
      for (const row of rows) assert.equal(row.indexOf('active'), heading!.indexOf('State'))
    }))
})

describe('petstore account', () => {
  it('says what to do next where there is nothing to list', async () => {
    await using database = await ENGINES[0]!.newDatabase()
    const place = database.url.slice('sqlite:'.length)
    const next = {
      'account list': `No accounts yet in ${place}. Create one: petstore account create EMAIL`,
      'key list': `No keys yet in ${place}. Generate one: petstore key create --account EMAIL --name NAME`,
    }
    await petstore(['migrate', '--database', database.url])
    for (const [words, message] of Object.entries(next)) {
      const { code, stdout, stderr } = await petstore([...words.split(' '), '--database', database.url])
      assert.deepEqual([code, stdout, stderr], [0, '', `${message} --database ${database.url}\n`])
      assert.equal((await petstore([...words.split(' '), '--json', '--database', database.url])).stdout, '[]\n')
    }
  })

  it('suggests no command with an address that holds a password, but the place for it', async () => {
    await using database = await postgres.newDatabase()
    await petstore(['migrate', '--database', database.url])
    const { code, stderr } = await petstore(['account', 'list', '--database', database.url])
    assert.equal(code, 0)
    const masked = database.url.replace(/:[^:/@]+@/, ':PASSWORD@')
    const command = `DATABASE_URL='${masked}' petstore account create EMAIL`
    assert.ok(stderr.endsWith(`. Create one: ${command}\n`), stderr)
    assert.ok(!stderr.includes(new URL(database.url).password))
  })

  for (const engine of ENGINES) {
    it(`suggests commands that a shell takes as they are printed, whatever they name, on ${engine.name}`, async () => {
      await using database = await engine.newDatabase()
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
        const words = spawnSync('sh', ['-c', `printf '%s\\n' ${line}`], { encoding: 'utf8' })
          .stdout.trimEnd()
          .split('\n')
        return words.map((word) => ({ EMAIL: email, NAME: "a shop's till" })[word] ?? word)
      }
      await run(['migrate', '--database', address])
      const created = await run([
        ...suggested(await run(['account', 'list', '--database', address])),
        '--password-stdin',
      ])
      await run([...suggested(await run(['key', 'list', '--account', email, '--database', address])), '--json'])
      assert.match((await run(suggested(created))).stderr, /^Created the key a shop's till \(key_/)
      const failures = [
        ['key', 'list', '--account', 'none@b.de'],
        ['key', 'revoke', 'none'],
      ]
      for (const words of failures) {
        const { stdout } = await run(suggested(await run([...words, '--database', address], 1)))
        assert.ok(stdout.includes(email), stdout)
      }
    })
  }

  it('suggests a command that works also for an email address that begins with a dash', () =>
    withAccount(async (_run, url) => {
      const option = ['--database', url]
      const input = PASSWORD
      const created = await petstore(['account', 'create', '--password-stdin', ...option, '--', '-x@y.z'], { input })
      const listed = await petstore(['key', 'list', '--account=-x@y.z', ...option])
      for (const { stderr } of [created, listed]) {
        const words = /: petstore (key create .*)\n$/.exec(stderr)?.[1]?.replaceAll("'", '') ?? assert.fail(stderr)
        const { code, stderr: outcome } = await petstore(words.split(' '))
        assert.deepEqual([code, outcome.split(' (')[0]], [0, 'Created the key NAME'], outcome)
      }
    }))

  it('suggests a placeholder for an email address that looks like a password', () =>
    withAccount(async (_run, url) => {
      for (const email of ['a:b@c.d', '-a:b@c.d']) {
        const words = ['account', 'create', '--password-stdin', '--database', url, '--', email]
        const { stderr } = await petstore(words, { input: PASSWORD })
        assert.match(stderr, /: petstore key create --account EMAIL --name NAME /, email)
      }
    }))

  it('keeps in the security log what was done with an account on the command line, and when', () =>
    withAccount(async (run, url) => {
      const at = (hours: number) => ({ clock: () => NOW + hours * HOUR })
      const made = await run(`key create --account ${EMAIL} --name laptop --json`, at(1))
      const { id } = JSON.parse(made) as { id: string }
      await run(`key revoke ${id}`, at(2))
      const changed = await run(`account password ${EMAIL} --password-stdin --json`, { ...at(3), input: PASSWORD })
      const account = JSON.parse(changed) as { id: string; email: string; createdAt: string }
      assert.deepEqual([account.email, account.createdAt], [EMAIL, new Date(NOW).toISOString()])
      await run(`account remove ${EMAIL} --yes`, at(4))
      const store = await openStore(readConfig({ database: url }, {}).database)
      const events = await store.accounts.auditTrail(account.id, 100)
      await store.close()
      assert.deepEqual(
        events.map((event) => [event.action, event.subject, event.via, (event.at - NOW) / HOUR]),
        [
          ['account.removed', EMAIL, 'command line', 4],
          ['account.password_changed', EMAIL, 'command line', 3],
          ['key.revoked', `laptop (${id})`, 'command line', 2],
          ['key.created', `laptop (${id})`, 'command line', 1],
          ['account.created', EMAIL, 'command line', 0],
        ],
      )
    }))

  it('is created once where two people create it at the same time, and the other one is told', async () => {
    await using database = await ENGINES[0]!.newDatabase()
    await petstore(['migrate', '--database', database.url])
    const words = ['account', 'create', EMAIL, '--password-stdin', '--database', database.url]
    const both = await Promise.all([1, 2].map(() => petstore(words, { input: PASSWORD })))
    assert.ok(both.some(({ code }) => code === 0))
    assert.deepEqual(
      both.find(({ code }) => code === 1),
      { code: 1, stdout: '', stderr: `petstore: There is already an account for ${EMAIL}.\n` },
    )
  })

  it('keeps a password that was changed elsewhere while this change was being made, and says so', () =>
    withAccount(async (run, url) => {
      const path = url.slice('sqlite:'.length)
      const change = (clock = () => NOW) =>
        petstore(['account', 'password', EMAIL, '--password-stdin', '--database', url], {
          input: 'one long password',
          clock,
        })
      const refused = await change(() => {
        using other = new DatabaseSync(path)
        other.exec("UPDATE accounts SET password_hash = 'changed'")
        return NOW
      })
      assert.equal(refused.code, 1)
      assert.match(refused.stderr, /^petstore: The password was changed meanwhile\. Try again\.\n$/)
      assert.equal((await change()).code, 0)
      assert.ok(await hasPassword(url, 'one long password'))
      assert.match(await run('account list'), /^acct_\w{16} {2}you@example\.com {2}2026-11-15 12:00 UTC\n$/)
    }))

  for (const words of [`key create --account ${EMAIL} --name laptop`, `account password ${EMAIL} --password-stdin`]) {
    it(`that is removed elsewhere during ${words.split(' -')[0]} is told as gone`, () =>
      withAccount(async (_run, url) => {
        const clock = () => {
          using other = new DatabaseSync(url.slice('sqlite:'.length))
          other.exec('DELETE FROM accounts')
          return NOW
        }
        assert.deepEqual(
          await petstore([...words.split(' '), '--database', url], { input: 'one long password', clock }),
          {
            code: 1,
            stdout: '',
            stderr: `petstore: There is no account for ${EMAIL}: it was removed meanwhile.\n`,
          },
        )
      }))
  }

  it('leaves nothing but the database file, whether the command succeeds or fails', async () => {
    await using database = await ENGINES[0]!.newDatabase()
    const path = database.url.slice('sqlite:'.length)
    const commands: [words: string, code: number][] = [
      [`account create ${EMAIL} --password-stdin`, 0],
      ['account list', 0],
      ['account remove me@example.com --yes', 1],
      ['key revoke key_none', 1],
    ]
    for (const [words, code] of commands) {
      const ended = await petstore([...words.split(' '), '--database', database.url], { input: PASSWORD })
      assert.equal(ended.code, code, ended.stderr)
      assert.match(ended.stdout, code === 0 ? /acct_\w{16}/ : /^$/, 'the account is on standard output')
      assert.deepEqual(readdirSync(dirname(path)), [basename(path)], words)
    }
  })

  it('removes the account that is named, and no other', () =>
    withAccount(async (run) => {
      await run('account create other@example.com --password-stdin', { input: PASSWORD })
      await run(`account remove ${EMAIL} --yes`)
      const accounts = JSON.parse(await run('account list --json')) as { email: string }[]
      assert.deepEqual(
        accounts.map(({ email }) => email),
        ['other@example.com'],
      )
    }))

  /** Whether the account's password is this one. */
  async function hasPassword(url: string, password: string): Promise<boolean> {
    const store = await openStore(readConfig({ database: url }, {}).database)
    const account = await store.accounts.accountByEmail(EMAIL)
    await store.close()
    return verifyPassword(password, account?.passwordHash)
  }

  it('takes the password from standard input, without a byte order mark and the line feed that ends it, and with all else', () =>
    withAccount(async (run, url) => {
      assert.ok(await hasPassword(url, PASSWORD))
      for (const [input, password] of [
        ['one long password\n', 'one long password'],
        ['two long passwords\r\n', 'two long passwords'],
        ['  kept as it is \n\n', '  kept as it is \n'],
        ['\uFEFFthree long passwords\n', 'three long passwords'],
      ] as const) {
        await run(`account password ${EMAIL} --password-stdin`, { input })
        assert.ok(await hasPassword(url, password), JSON.stringify(input))
      }
      assert.ok(!(await hasPassword(url, PASSWORD)))
    }))

  const asked = 'Password (at least 12 characters): '
  const again = 'The same password again: '

  if (hasTerminal)
    it('states the rule on a terminal, asks twice, and does not show what is typed', async () => {
      await using folder = await Folder.create()
      const { code, stdout } = await atTerminal(folder, `account create ${EMAIL}`, {
        [asked]: `${PASSWORD}\r`,
        [again]: `${PASSWORD}\r`,
      })
      assert.equal(code, 0, stdout)
      assert.ok(!stdout.includes(PASSWORD))
      assert.match(
        stdout,
        /characters\): \s*The same password again: \s*Created the database \/.*petstore\.db\. It belongs to staging .*\s*Created the account you@example\.com/,
      )
      assert.ok(await hasPassword(`sqlite:${folder.path}/data/petstore.db`, PASSWORD))
    })

  if (hasTerminal)
    it('asks again where the first is none, or the two differ', async () => {
      await using folder = await Folder.create()
      const { code, stdout } = await atTerminal(folder, `account create ${EMAIL}`, {
        [asked]: ['short\r', `${PASSWORD}\r`, `${PASSWORD}\r`],
        [again]: ['correct horse batteries\r', `${PASSWORD}\r`],
      })
      assert.equal(code, 0, stdout)
      assert.match(
        stdout.replaceAll('\r', ''),
        /^There is no store .*\nPassword .*\nThe password must have at least 12 characters, got 5\.\nPassword .*\nThe same .*\nThe two passwords differ; try again\.\nPassword .*\nThe same .*\nCreated the database/,
      )
      assert.ok(await hasPassword(`sqlite:${folder.path}/data/petstore.db`, PASSWORD))
    })

  for (const [name, key] of [
    ['Ctrl-C', '\u0003'],
    ['Ctrl-D', '\u0004'],
  ] as const) {
    if (hasTerminal)
      it(`ends silently with 130 at ${name}, at either question`, async () => {
        await using folder = await Folder.create()
        const first = await atTerminal(folder, `account create ${EMAIL}`, { [asked]: key })
        const shown = ({ stdout }: Ended) =>
          stdout
            .replace(/^.*\[y\/N\] y/, '')
            .replaceAll(/\s+/g, ' ')
            .trim()
        assert.deepEqual([first.code, shown(first)], [130, asked.trimEnd()])
        const second = await atTerminal(folder, `account create ${EMAIL}`, { [asked]: `${PASSWORD}\r`, [again]: key })
        assert.deepEqual([second.code, shown(second)], [130, `${asked}${again}`.trimEnd()])
        assert.deepEqual(readdirSync(folder.path), [])
      })
  }

  if (hasTerminal)
    it('checks the email address, and whether it is taken, before it asks for a password', async () => {
      await using folder = await Folder.create()
      await folder.run(['account', 'create', EMAIL, '--password-stdin'], { input: PASSWORD })
      const answers: [words: string, message: string][] = [
        ['account create nonsense', 'The email address must have the form'],
        [`account create ${EMAIL.toUpperCase()}`, 'There is already an account for YOU@EXAMPLE.COM.'],
        ['account password other@example.com', 'There is no account for other@example.com'],
      ]
      for (const [words, message] of answers) {
        const { code, stdout } = await atTerminal(folder, words, {})
        assert.equal(code, 1)
        assert.ok(stdout.startsWith(`petstore: ${message}`), stdout)
      }
    })
})

// petstore account and petstore key: every line that they print. test/account-commands.test.ts has both engines, terminals and
// odd names; test/commands.test.ts has the commands beside a running service.
import assert from 'node:assert/strict'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { petstore } from '../../test/in-process-command.ts'

const PASSWORD = 'correct horse battery'

type Printed = Record<string, unknown>

/** Commands on a database of their own, at a time that the test sets. */
class Commands {
  readonly place: string
  minutes = 0

  constructor(folder: string) {
    this.place = join(folder, 'pets.db')
  }

  get database(): string {
    return `--database sqlite:${this.place}`
  }

  run(line: string, { input = PASSWORD, isTTY = false } = {}) {
    const clock = () => Date.UTC(2026, 10, 15, 12, this.minutes)
    return petstore(`${line} ${this.database}`.split(' '), { input, isTTY, clock })
  }

  /** Resolves with the exit code, the output and the messages; ids and secrets are replaced by their kinds. */
  async told(line: string, options?: { input?: string; isTTY?: boolean }): Promise<[number, string, string]> {
    const { code, stdout, stderr } = await this.run(line, options)
    const plain = (text: string) =>
      text.replaceAll(/(acct|key)_\w{10,}/g, '$1_…').replaceAll(/pets_test_[\w…]+/g, 'pets_test_…')
    return [code, plain(stdout), plain(stderr)]
  }

  async json<T = Printed>(line: string): Promise<T> {
    const { code, stdout, stderr } = await this.run(`${line} --json`)
    assert.equal(code, 0, stderr)
    return JSON.parse(stdout) as T
  }

  async createAccounts(...names: string[]): Promise<void> {
    for (const name of names) await this.json(`account create ${name}@example.com --password-stdin`)
  }
}

async function withCommands(work: (commands: Commands) => Promise<void>): Promise<void> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'petstore-test-'))
  await work(new Commands(folder.path))
}

describe('petstore account', () => {
  it('create says what it has made and what comes next, and in one line what it refuses', () =>
    withCommands(async (commands) => {
      const create = 'account create a@example.com --password-stdin'
      const [code, , why] = await commands.told(create, { input: 'short' })
      assert.equal(code, 1)
      assert.match(why, /^petstore: The password must have at least 12 characters/)
      assert.deepEqual(await commands.told('account create a@example.com'), [
        2,
        '',
        'petstore: Give the password on standard input, with --password-stdin.\nSee: petstore help account create\n',
      ])
      assert.equal((await commands.told('account create nobody --password-stdin'))[0], 1)
      assert.deepEqual(await commands.told(create), [
        0,
        'Created the account a@example.com (acct_…).\n',
        `Created the database ${commands.place}. It belongs to staging by default; to change that, set PETSTORE_ENVIRONMENT before it has keys or animals.\n` +
          `Next: petstore key create --account a@example.com --name NAME ${commands.database}\n` +
          `Note: there was no store at ${commands.place}, so this command created one. Was another meant? Name it, and remove this one.\n`,
      ])
      const again = [1, '', 'petstore: There is already an account for a@example.com.\n']
      assert.deepEqual(await commands.told(create, { input: '' }), again)
      const { id, ...other } = await commands.json('account create b@example.com --password-stdin')
      assert.match(String(id), /^acct_/)
      assert.deepEqual(other, { email: 'b@example.com', createdAt: '2026-11-15T12:00:00.000Z' })
    }))

  it('list shows each account, or how to make the first one', () =>
    withCommands(async (commands) => {
      await commands.run('migrate')
      assert.deepEqual(await commands.json('account list'), [])
      assert.deepEqual(await commands.told('account list'), [
        0,
        '',
        `No accounts yet in ${commands.place}. Create one: petstore account create EMAIL ${commands.database}\n`,
      ])
      await commands.createAccounts('a')
      commands.minutes = 1
      await commands.createAccounts('b')
      const rows = 'acct_…  a@example.com  2026-11-15 12:00 UTC\nacct_…  b@example.com  2026-11-15 12:01 UTC\n'
      assert.deepEqual(await commands.told('account list'), [0, rows, ''])
      const listed = await commands.json<Printed[]>('account list')
      assert.deepEqual(
        listed.map(({ email, createdAt }) => [email, createdAt]),
        [
          ['a@example.com', '2026-11-15T12:00:00.000Z'],
          ['b@example.com', '2026-11-15T12:01:00.000Z'],
        ],
      )
      assert.match((await commands.told('account list', { isTTY: true }))[1], /^\S*Id +Email +Created/)
    }))

  it('password and remove change the account that they name, and no other', () =>
    withCommands(async (commands) => {
      await commands.createAccounts('a', 'b')
      const password = 'account password a@example.com --password-stdin'
      const changed = [0, '', 'Changed the password of a@example.com.\n']
      assert.deepEqual(await commands.told(password, { input: `${PASSWORD} staple` }), changed)
      assert.equal((await commands.told(password, { input: 'short' }))[0], 1)
      assert.match((await commands.told('account remove b@example.com'))[2], /for good; add --yes to confirm\.\n/)
      assert.equal((await commands.json('account remove b@example.com --yes'))['email'], 'b@example.com')
      const missing = `petstore: There is no account for b@example.com in ${commands.place}; see petstore account list ${commands.database}\n`
      for (const line of ['account password b@example.com --password-stdin', 'account remove b@example.com --yes'])
        assert.deepEqual(await commands.told(line), [1, '', missing])
      const removed = [0, '', 'Removed the account a@example.com and its keys.\n']
      assert.deepEqual(await commands.told('account remove a@example.com --yes'), removed)
    }))
})

describe('petstore key', () => {
  it('create prints the secret once, and takes a time or a date to expire', () =>
    withCommands(async (commands) => {
      await commands.createAccounts('a')
      const create = 'key create --account a@example.com --name laptop'
      assert.deepEqual(await commands.told(`${create} --expires 2w`), [
        0,
        'pets_test_…\n',
        'Created the key laptop (key_…). It is shown only once: save it now.\n',
      ])
      for (const [expires, at] of [
        ['', null],
        [' --expires 12h', '2026-11-16T00:00:00.000Z'],
        [' --expires 90d', '2027-02-13T12:00:00.000Z'],
        [' --expires 2w', '2026-11-29T12:00:00.000Z'],
        [' --expires 2027-01-31', '2027-01-31T00:00:00.000Z'],
      ]) {
        const { key, name, expiresAt } = await commands.json(`${create}${expires}`)
        assert.match(String(key), /^pets_test_\w+$/)
        assert.deepEqual([name, expiresAt], ['laptop', at])
      }
      const refused: Record<string, string> = {
        'key create --name x': 'Name the account that the key belongs to, with --account EMAIL.',
        'key create --account a@example.com': 'Give the key a name, with --name NAME.',
      }
      for (const expires of ['0d', '12', '1y', 'x90d', '90dx', '2027-02-31', '12027-01-31', '2027-01-31T00'])
        refused[`${create} --expires ${expires}`] =
          `--expires must be hours, days or weeks (12h, 90d, 4w) or a date such as 2027-01-31, got "${expires}".`
      for (const [line, why] of Object.entries(refused))
        assert.deepEqual(await commands.told(line), [2, '', `petstore: ${why}\nSee: petstore help key create\n`])
    }))

  it('list and revoke show each key redacted, with its account and state', () =>
    withCommands(async (commands) => {
      await commands.createAccounts('a', 'b')
      assert.deepEqual(await commands.told('key list --account a@example.com'), [
        0,
        '',
        `No keys yet in ${commands.place}. Generate one: petstore key create --account a@example.com --name NAME ${commands.database}\n`,
      ])
      assert.deepEqual(await commands.json('key list'), [])
      const { id: first } = await commands.json('key create --account a@example.com --name laptop --expires 2w')
      commands.minutes = 1
      const { id: second } = await commands.json('key create --account b@example.com --name ci')
      assert.deepEqual(await commands.told('key list'), [
        0,
        'key_…  b@example.com  ci      pets_test_…  active  2026-11-15 12:01 UTC  -  -\n' +
          'key_…  a@example.com  laptop  pets_test_…  active  2026-11-15 12:00 UTC  -  2026-11-29 12:00 UTC\n',
        '',
      ])
      const listed = await commands.json<Printed[]>('key list --account b@example.com')
      assert.deepEqual(
        listed.map(({ id, account, state, revokedAt }) => [id, account, state, revokedAt]),
        [[second, 'b@example.com', 'active', null]],
      )
      assert.deepEqual(await commands.told(`key revoke ${String(first)}`), [0, '', 'Revoked laptop (key_…).\n'])
      const again = [0, '', 'laptop (key_…) was already revoked.\n']
      assert.deepEqual(await commands.told(`key revoke ${String(first)}`), again)
      const at = '2026-11-15T12:01:00.000Z'
      assert.partialDeepStrictEqual(await commands.json(`key revoke ${String(second)}`), {
        account: 'b@example.com',
        state: 'revoked',
        createdAt: at,
        revokedAt: at,
        lastUsedAt: null,
      })
      assert.deepEqual(await commands.told('key revoke key_1'), [
        1,
        '',
        `petstore: There is no key key_1 in ${commands.place}; see petstore key list ${commands.database}\n`,
      ])
      assert.equal((await commands.told('key list --account c@example.com'))[0], 1)
    }))
})

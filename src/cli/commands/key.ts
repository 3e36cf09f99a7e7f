// petstore key …: manages API keys. The secret is printed once, when the key is created.
import { redacted, stateOf } from '../../accounts/api-keys.ts'
import { Problem } from '../../contract/errors.ts'
import { describeDatabase } from '../../store/database/database-address.ts'
import type { ApiKey } from '../../store/account-store.ts'
import { accountsOf, findAccount } from './account.ts'
import { agrees, type Command, CommandFailed, environmentOf, STORE_OPTIONS, UsageError, withStore } from '../command.ts'
import { accountOption, nextCommand } from '../next-command.ts'
import { formatTime, isoTime, print, printJson, printTable, report, reportAsIs } from '../terminal.ts'

const create: Command = {
  name: 'key create',
  summary: 'Generate an API key',
  options: {
    account: { value: 'EMAIL', meaning: 'Account that the key belongs to' },
    name: { value: 'NAME', meaning: 'Name to recognise the key by' },
    expires: { value: 'WHEN', meaning: 'When it expires: 12h, 90d, 4w, or a date such as 2027-01-31; unset: never' },
    ...STORE_OPTIONS,
  },
  examples: [
    'petstore key create --account you@example.com --name laptop',
    'petstore key create --account you@example.com --name ci --expires 90d --json',
  ],
  async run(input) {
    const { terminal, flags, switches } = input
    const { account: email, name, expires } = flags
    if (email === undefined) throw new UsageError('Name the account that the key belongs to, with --account EMAIL.')
    if (name === undefined) throw new UsageError('Give the key a name, with --name NAME.')
    const expiresAt = expires === undefined ? undefined : parseExpiry(expires, terminal.clock())
    const made = await withStore(input, async (store) => {
      const account = await findAccount(input, store, email)
      const accounts = accountsOf(input, store, await environmentOf(input, store))
      const [namesake] = activeKeys(await store.accounts.listKeys(account.id), name, terminal.clock())
      const question = `There is an active key ${name} (${namesake?.id}) already. Generate another with this name?`
      if (namesake !== undefined && !(await agrees(terminal, question)))
        throw new CommandFailed('No key was generated.')
      return accounts.createKey(account, name, expiresAt, 'command line')
    })
    if (made instanceof Problem) throw new CommandFailed(made.message)
    const { key, secret } = made
    if (switches['json']) {
      return printJson(terminal, { id: key.id, key: secret, name: key.name, expiresAt: isoTime(key.expiresAt) })
    }
    print(terminal, secret)
    report(terminal, `Created the key ${key.name} (${key.id}). It is shown only once: save it now.`)
  },
}

const list: Command = {
  name: 'key list',
  summary: 'List the API keys, redacted',
  options: { account: { value: 'EMAIL', meaning: 'Only the keys of this account' }, ...STORE_OPTIONS },
  examples: ['petstore key list', 'petstore key list --account you@example.com --json'],
  async run(input) {
    const { terminal, flags, switches, config } = input
    const now = terminal.clock()
    const { emails, keys } = await withStore(input, async (store) => {
      const account = flags['account'] === undefined ? undefined : await findAccount(input, store, flags['account'])
      const accounts = account === undefined ? await store.accounts.listAccounts() : [account]
      return {
        emails: new Map(accounts.map(({ id, email }) => [id, email])),
        keys: await store.accounts.listKeys(account?.id),
      }
    })
    if (switches['json']) {
      const listed = keys.map((key) => keyJson(key, emails.get(key.accountId), now))
      return printJson(terminal, listed)
    }
    if (keys.length === 0) {
      const command = nextCommand(input, 'key', 'create', ...accountOption(flags['account']), '--name', 'NAME')
      return reportAsIs(terminal, `No keys yet in ${describeDatabase(config.database)}. Generate one: ${command}`)
    }
    const rows = keys.map((key) => {
      const { id, accountId, name, createdAt, lastUsedAt, expiresAt } = key
      const times = [createdAt, lastUsedAt, expiresAt].map(formatTime)
      return [id, emails.get(accountId) ?? accountId, name, redacted(key), stateOf(key, now), ...times]
    })
    printTable(terminal, ['Id', 'Account', 'Name', 'Key', 'State', 'Created', 'Last used', 'Expires'], rows)
  },
}

const revoke: Command = {
  name: 'key revoke',
  summary: 'Revoke an API key',
  takes: ['ID|NAME'],
  options: STORE_OPTIONS,
  examples: ['petstore key revoke laptop', 'petstore key revoke key_4fGh7JkLm2NpQrSt'],
  async run(input) {
    const { terminal, positionals, switches, config } = input
    await withStore(input, async (store) => {
      const sought = positionals[0]!
      const named = activeKeys(await store.accounts.listKeys(), sought, terminal.clock())
      const key = (await store.accounts.keyById(sought)) ?? (named.length === 1 ? named[0] : undefined)
      if (key === undefined) {
        const which = named.length > 1 ? `${named.length} active keys have the name` : 'There is no active key'
        const where = `in ${describeDatabase(config.database)}. Name one by its id, which is not the key itself`
        throw new CommandFailed(`${which} ${sought} ${where}; see`, { command: ['key', 'list'] })
      }
      const revoked = await accountsOf(input, store).revokeKey(key, 'command line')
      if (switches['json']) {
        const now = (await store.accounts.keyById(key.id)) ?? key
        const account = await store.accounts.accountById(key.accountId)
        return printJson(terminal, keyJson(now, account?.email, terminal.clock()))
      }
      report(terminal, revoked ? `Revoked ${key.name} (${key.id}).` : `${key.name} (${key.id}) was already revoked.`)
    })
  },
}

export const KEY_COMMANDS: readonly Command[] = [create, list, revoke]

function activeKeys(keys: readonly ApiKey[], sought: string, now: number): ApiKey[] {
  return keys.filter((key) => key.name === sought && stateOf(key, now) === 'active')
}

const UNIT_MS: Record<string, number> = { h: 3_600_000, d: 86_400_000, w: 7 * 86_400_000 }

function parseExpiry(text: string, now: number): number {
  const [, count, unit = ''] = /^([1-9][0-9]{0,4})([hdw])$/.exec(text) ?? []
  if (count !== undefined) return now + Number(count) * UNIT_MS[unit]!
  const date = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(text) : Number.NaN
  // Date.parse reads 31 February as 3 March.
  if (!Number.isNaN(date) && new Date(date).toISOString().startsWith(text)) return date
  throw new UsageError(
    `--expires must be hours, days or weeks (12h, 90d, 4w) or a date such as 2027-01-31, got ${JSON.stringify(text)}.`,
  )
}

function keyJson(key: ApiKey, email: string | undefined, now: number): object {
  return {
    id: key.id,
    account: email ?? key.accountId,
    name: key.name,
    redacted: redacted(key),
    state: stateOf(key, now),
    createdAt: isoTime(key.createdAt),
    lastUsedAt: isoTime(key.lastUsedAt),
    expiresAt: isoTime(key.expiresAt),
    revokedAt: isoTime(key.revokedAt),
  }
}

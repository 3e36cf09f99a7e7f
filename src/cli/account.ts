// petstore account …: manages accounts, for deployments where sign-up is closed.
import { Accounts } from '../accounts/accounts.ts'
import { Refused } from '../contract/refused.ts'
import type { Config } from '../config.ts'
import type { Account, Store } from '../store/store.ts'
import { type Command, CommandFailed, type Input, JSON_OPTION, settingOptions, UsageError, withStore } from './command.ts'
import { askHidden, day, isoTime, print, printJson, printTable, readAll, report, type Terminal } from './terminal.ts'

const PASSWORD_OPTION = { type: 'boolean', meaning: 'Read the password from standard input' } as const

const create: Command = {
  name: 'account create',
  summary: 'Create an account',
  takes: ['EMAIL'],
  options: { 'password-stdin': PASSWORD_OPTION, json: JSON_OPTION, ...settingOptions(['database']) },
  examples: [
    'petstore account create you@example.com',
    'petstore account create you@example.com --password-stdin < password.txt',
  ],
  async run({ terminal, positionals, switches, config }) {
    const password = await readPassword(terminal, switches['password-stdin'])
    const account = await withStore(config, (store) =>
      accountsOf(store, config, terminal).create(positionals[0]!, password, 'command line'),
    )
    if (account instanceof Refused) throw new CommandFailed(account.message)
    if (switches['json']) return printJson(terminal, accountJson(account))
    print(terminal, `Created the account ${account.email} (${account.id}).`)
    report(terminal, `Next: petstore key create --account ${account.email} --name NAME`)
  },
}

const list: Command = {
  name: 'account list',
  summary: 'List the accounts',
  takes: [],
  options: { json: JSON_OPTION, ...settingOptions(['database']) },
  examples: ['petstore account list', 'petstore account list --json'],
  async run({ terminal, switches, config }) {
    const accounts = await withStore(config, (store) => store.accounts.listAccounts())
    if (switches['json']) return printJson(terminal, accounts.map(accountJson))
    if (accounts.length === 0) return report(terminal, 'No accounts yet. Create one: petstore account create EMAIL')
    const rows = accounts.map(({ id, email, createdAt }) => [id, email, day(createdAt)])
    printTable(terminal, ['Id', 'Email', 'Created'], rows)
  },
}

const password: Command = {
  name: 'account password',
  summary: "Change an account's password",
  takes: ['EMAIL'],
  options: { 'password-stdin': PASSWORD_OPTION, json: JSON_OPTION, ...settingOptions(['database']) },
  examples: ['petstore account password you@example.com --password-stdin < password.txt'],
  async run({ terminal, positionals, switches, config }) {
    const chosen = await readPassword(terminal, switches['password-stdin'])
    await withStore(config, async (store) => {
      const account = await findAccount(store, positionals[0]!)
      const changed = await accountsOf(store, config, terminal).changePassword(account, chosen, 'command line')
      if (changed instanceof Refused) throw new CommandFailed(changed.message)
      if (switches['json']) printJson(terminal, accountJson(account))
      else report(terminal, `Changed the password of ${account.email}.`)
    })
  },
}

const remove: Command = {
  name: 'account remove',
  summary: 'Remove an account and its keys',
  takes: ['EMAIL'],
  options: { yes: { type: 'boolean', meaning: 'Confirm the removal' }, json: JSON_OPTION, ...settingOptions(['database']) },
  examples: ['petstore account remove you@example.com --yes'],
  async run({ terminal, positionals, switches, config }: Input) {
    if (!switches['yes']) throw new UsageError('This removes the account and its keys for good; add --yes to confirm.')
    await withStore(config, async (store) => {
      const account = await findAccount(store, positionals[0]!)
      await accountsOf(store, config, terminal).remove(account, 'command line')
      if (switches['json']) printJson(terminal, accountJson(account))
      else report(terminal, `Removed the account ${account.email} and its keys.`)
    })
  },
}

export const ACCOUNT_COMMANDS: readonly Command[] = [create, list, password, remove]

export function accountsOf(store: Store, { environment }: Config, { clock }: Terminal): Accounts {
  return new Accounts({ store: store.accounts, environment, clock })
}

export async function findAccount(store: Store, email: string): Promise<Account> {
  const account = await store.accounts.accountByEmail(email)
  if (account !== undefined) return account
  throw new CommandFailed(`There is no account for ${email}; see petstore account list.`)
}

async function readPassword(terminal: Terminal, fromStdin: boolean | undefined): Promise<string> {
  if (fromStdin) return readAll(terminal.stdin)
  if (terminal.stdin.isTTY) return askHidden(terminal, 'Password: ')
  throw new UsageError('Give the password on standard input, with --password-stdin.')
}

function accountJson({ id, email, createdAt }: Account): object {
  return { id, email, createdAt: isoTime(createdAt) }
}

// petstore account …: manages accounts, for deployments where sign-up is closed.
import { Accounts, emailProblem } from '../accounts/accounts.ts'
import { PASSWORD_MIN_LENGTH, passwordProblem } from '../accounts/passwords.ts'
import { Refused } from '../contract/errors.ts'
import type { Environment } from '../contract/operations.ts'
import { databasePlace } from '../store/database-address.ts'
import type { Account } from '../store/account-store.ts'
import { NoDatabase, type Store } from '../store/store.ts'
import {
  type Command,
  CommandFailed,
  type Input,
  JSON_OPTION,
  nextCommand,
  type Option,
  settingOptions,
  UsageError,
  withStore,
} from './command.ts'
import { askHidden, day, isoTime, print, printJson, printTable, readAll, report, type Terminal } from './terminal.ts'

const PASSWORD_OPTION: Option = { type: 'boolean', meaning: 'Read the password from standard input' }

const create: Command = {
  name: 'account create',
  summary: 'Create an account',
  takes: ['EMAIL'],
  options: { 'password-stdin': PASSWORD_OPTION, json: JSON_OPTION, ...settingOptions(['database']) },
  examples: [
    'petstore account create you@example.com',
    'petstore account create you@example.com --password-stdin < password.txt',
  ],
  async run(input) {
    const { terminal, positionals, switches, config } = input
    const email = positionals[0]!
    const problem = emailProblem(email) ?? (await takenProblem(input, email))
    if (problem !== undefined) throw new CommandFailed(problem.message)
    const password = await readPassword(input)
    const account = await withStore(
      input,
      (store) => accountsOf(store, config.environment, terminal).create(email, password, 'command line'),
      { create: true },
    )
    if (account instanceof Refused) throw new CommandFailed(account.message)
    if (switches['json']) return printJson(terminal, accountJson(account))
    print(terminal, `Created the account ${account.email} (${account.id}).`)
    report(terminal, `Next: ${nextCommand(input, `key create --account ${account.email} --name NAME`)}`)
  },
}

const list: Command = {
  name: 'account list',
  summary: 'List the accounts',
  takes: [],
  options: { json: JSON_OPTION, ...settingOptions(['database']) },
  examples: ['petstore account list', 'petstore account list --json'],
  async run(input) {
    const { terminal, switches, config } = input
    const accounts = await withStore(input, (store) => store.accounts.listAccounts())
    if (switches['json']) return printJson(terminal, accounts.map(accountJson))
    if (accounts.length === 0) {
      return report(
        terminal,
        `No accounts yet in ${databasePlace(config.database)}. Create one: ${nextCommand(input, 'account create EMAIL')}`,
      )
    }
    const rows = accounts.map(({ id, email, createdAt }) => [id, email, day(createdAt)])
    printTable(terminal, ['Id', 'Email', 'Created'], rows)
  },
}

const changePassword: Command = {
  name: 'account password',
  summary: "Change an account's password",
  takes: ['EMAIL'],
  options: { 'password-stdin': PASSWORD_OPTION, json: JSON_OPTION, ...settingOptions(['database']) },
  examples: [
    'petstore account password you@example.com',
    'petstore account password you@example.com --password-stdin < password.txt',
  ],
  async run(input) {
    const { terminal, positionals, switches, config } = input
    await withStore(input, async (store) => {
      const account = await findAccount(input, store, positionals[0]!)
      const chosen = await readPassword(input)
      const changed = await accountsOf(store, config.environment, terminal).changePassword(
        account,
        chosen,
        'command line',
      )
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
  options: {
    yes: { type: 'boolean', meaning: 'Confirm the removal' },
    json: JSON_OPTION,
    ...settingOptions(['database']),
  },
  examples: ['petstore account remove you@example.com --yes'],
  async run(input) {
    const { terminal, positionals, switches, config } = input
    if (!switches['yes']) throw new UsageError('This removes the account and its keys for good; add --yes to confirm.')
    await withStore(input, async (store) => {
      const account = await findAccount(input, store, positionals[0]!)
      await accountsOf(store, config.environment, terminal).remove(account, 'command line')
      if (switches['json']) printJson(terminal, accountJson(account))
      else report(terminal, `Removed the account ${account.email} and its keys.`)
    })
  },
}

export const ACCOUNT_COMMANDS: readonly Command[] = [create, list, changePassword, remove]

/** The environment is that of new keys. */
export function accountsOf(store: Store, environment: Environment, { clock }: Terminal): Accounts {
  return new Accounts({ store, environment, clock })
}

export async function findAccount(input: Input, store: Store, email: string): Promise<Account> {
  const account = await store.accounts.accountByEmail(email)
  if (account !== undefined) return account
  throw new CommandFailed(
    `There is no account for ${email} in ${databasePlace(input.config.database)}; see ${nextCommand(input, 'account list')}`,
  )
}

/** Asked before the password is, and without creating a database: nobody types one in vain. */
async function takenProblem(input: Input, email: string): Promise<Refused | undefined> {
  try {
    const account = await withStore(input, (store) => store.accounts.accountByEmail(email))
    return account && new Refused(`There is already an account for ${email}.`)
  } catch (error) {
    if (error instanceof NoDatabase) return undefined
    throw error
  }
}

function accountJson({ id, email, createdAt }: Account): object {
  return { id, email, createdAt: isoTime(createdAt) }
}

/** Reads a new password: asks for it on a terminal, twice, until it is good, or takes it from standard input. */
async function readPassword({ terminal, switches }: Input): Promise<string> {
  if (switches['password-stdin']) return accepted(await readAll(terminal.stdin))
  if (!terminal.stdin.isTTY) throw new UsageError('Give the password on standard input, with --password-stdin.')
  for (;;) {
    const password = await askHidden(terminal, `Password (at least ${PASSWORD_MIN_LENGTH} characters): `)
    const problem = passwordProblem(password)
    if (problem === undefined && password === (await askHidden(terminal, 'The same password again: '))) return password
    report(terminal, problem ?? 'The two passwords differ; try again.')
  }
}

function accepted(password: string): string {
  const problem = passwordProblem(password)
  if (problem === undefined) return password
  throw new CommandFailed(problem)
}

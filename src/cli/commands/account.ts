// petstore account …: manages accounts, for deployments where sign-up is closed.
import { emailProblem, nameProblem } from '../../accounts/account-problems.ts'
import { Accounts } from '../../accounts/accounts.ts'
import { roleWords } from '../../accounts/roles.ts'
import { PASSWORD_MIN_LENGTH, passwordProblem } from '../../accounts/passwords.ts'
import { Problem } from '../../contract/errors.ts'
import { escapeControls } from '../../contract/json.ts'
import { describeDatabase } from '../../store/database/database-address.ts'
import type { Account } from '../../store/account-store.ts'
import type { Store } from '../../store/store.ts'
import {
  askToCreate,
  type Command,
  CommandFailed,
  conclude,
  type Input,
  STORE_OPTIONS,
  UsageError,
  withExistingStore,
  withStore,
} from '../command.ts'
import { accountOption, nextCommand } from '../next-command.ts'
import {
  askHidden,
  formatTime,
  isoTime,
  print,
  printJson,
  printTable,
  readAll,
  report,
  reportAsIs,
} from '../terminal.ts'

const PASSWORD_OPTION = { meaning: 'Read the password from standard input' }

const create: Command = {
  name: 'account create',
  summary: 'Create an account',
  takes: ['EMAIL'],
  options: {
    name: { value: 'NAME', meaning: 'Name that the console shows for the person; asked for at the first sign-in' },
    'password-stdin': PASSWORD_OPTION,
    ...STORE_OPTIONS,
  },
  examples: [
    'petstore account create you@example.com --name Maria',
    'petstore account create you@example.com --password-stdin < password.txt',
  ],
  async run(input) {
    const { terminal, positionals, flags, switches } = input
    const email = positionals[0]!
    const name = flags['name']?.trim()
    const problem = emailProblem(email) ?? (name === undefined ? undefined : nameProblem(name))
    if (problem !== undefined) throw new CommandFailed(problem.message)
    // Checked before the user types a password, and without creating a database.
    if (await withExistingStore(input, (store) => store.accounts.accountByEmail(email)))
      throw new CommandFailed(`There is already an account for ${email}.`)
    await askToCreate(input)
    const password = await readPassword(input)
    const account = await withStore(
      input,
      (store) => accountsOf(input, store).create(email, password, 'command line', { name }),
      { create: true },
    )
    if (account instanceof Problem) throw new CommandFailed(account.message)
    if (switches['json']) return printJson(terminal, accountJson(account))
    print(terminal, `Created the account ${escapeControls(account.email)} (${account.id}).`)
    const next = nextCommand(input, 'key', 'create', ...accountOption(account.email), '--name', 'NAME')
    reportAsIs(terminal, `Next: ${next}`)
  },
}

const list: Command = {
  name: 'account list',
  summary: 'List the accounts',
  options: STORE_OPTIONS,
  examples: ['petstore account list', 'petstore account list --json'],
  async run(input) {
    const { terminal, switches, config } = input
    const accounts = await withStore(input, (store) => store.accounts.listAccounts())
    if (switches['json']) return printJson(terminal, accounts.map(accountJson))
    if (accounts.length === 0) {
      const command = nextCommand(input, 'account', 'create', 'EMAIL')
      return reportAsIs(terminal, `No accounts yet in ${describeDatabase(config.database)}. Create one: ${command}`)
    }
    const rows = accounts.map((each) => [
      each.id,
      each.email,
      each.name ?? '–',
      formatTime(each.createdAt),
      roleWords(each),
    ])
    printTable(terminal, ['Id', 'Email', 'Name', 'Created', 'Role'], rows)
  },
}

const changePassword: Command = {
  name: 'account password',
  summary: "Change an account's password",
  takes: ['EMAIL'],
  options: { 'password-stdin': PASSWORD_OPTION, ...STORE_OPTIONS },
  examples: [
    'petstore account password you@example.com',
    'petstore account password you@example.com --password-stdin < password.txt',
  ],
  async run(input) {
    await withStore(input, async (store) => {
      const account = await findAccount(input, store, input.positionals[0]!)
      const password = await readPassword(input)
      const changed = await accountsOf(input, store).changePassword(account, password, 'command line')
      if (changed instanceof Problem) throw new CommandFailed(changed.message)
      conclude(input, accountJson(account), `Changed the password of ${account.email}.`)
    })
  },
}

const remove: Command = {
  name: 'account remove',
  summary: 'Remove an account and its keys',
  takes: ['EMAIL'],
  options: { yes: { meaning: 'Confirm the removal' }, ...STORE_OPTIONS },
  examples: ['petstore account remove you@example.com --yes'],
  async run(input) {
    const { positionals, switches } = input
    await withStore(input, async (store) => {
      const account = await findAccount(input, store, positionals[0]!)
      if (!switches['yes'])
        throw new UsageError('This removes the account and its keys for good; add --yes to confirm.')
      const problem = await accountsOf(input, store).remove(account, 'command line')
      if (problem !== undefined) throw new CommandFailed(problem.message)
      conclude(input, accountJson(account), `Removed the account ${account.email} and its keys.`)
    })
  },
}

const manager: Command = {
  name: 'account manager',
  summary: 'Make an account a manager',
  takes: ['EMAIL'],
  options: STORE_OPTIONS,
  examples: ['petstore account manager you@example.com'],
  async run(input) {
    await withStore(input, async (store) => {
      const account = await findAccount(input, store, input.positionals[0]!)
      const problem = await accountsOf(input, store).setRole(account, 'manager', 'command line')
      if (problem !== undefined) throw new CommandFailed(problem.message)
      conclude(input, accountJson({ ...account, role: 'manager' }), `${account.email} is a manager.`)
    })
  },
}

export const ACCOUNT_COMMANDS: readonly Command[] = [create, list, changePassword, remove, manager]

/** `environment` is the environment of the keys that are created. */
export function accountsOf({ terminal, config }: Input, store: Store, environment = config.environment): Accounts {
  return new Accounts({ store, environment, clock: terminal.clock })
}

export async function findAccount(input: Input, store: Store, email: string): Promise<Account> {
  const account = await store.accounts.accountByEmail(email)
  if (account !== undefined) return account
  const message = `There is no account for ${email} in ${describeDatabase(input.config.database)}; see`
  throw new CommandFailed(message, { command: ['account', 'list'] })
}

function accountJson({ id, email, name, createdAt, role }: Account): object {
  return { id, email, name: name ?? null, createdAt: isoTime(createdAt), role }
}

/** Reads a new password: from standard input with --password-stdin, else asks on the terminal, twice, until it is valid. */
async function readPassword({ terminal, switches }: Input): Promise<string> {
  if (switches['password-stdin']) {
    // Without the line feed that `echo` adds.
    const password = new TextDecoder().decode(await readAll(terminal.stdin)).replace(/\r?\n$/, '')
    const problem = passwordProblem(password)
    if (problem !== undefined) throw new CommandFailed(problem)
    return password
  }
  if (!terminal.stdin.isTTY) throw new UsageError('Give the password on standard input, with --password-stdin.')
  for (;;) {
    const password = await askHidden(terminal, `Password (at least ${PASSWORD_MIN_LENGTH} characters): `)
    const problem = passwordProblem(password)
    if (problem === undefined && password === (await askHidden(terminal, 'The same password again: '))) return password
    report(terminal, problem ?? 'The two passwords differ; try again.')
  }
}

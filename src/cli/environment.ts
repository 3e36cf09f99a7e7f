// petstore environment …: shows or changes the environment that a database belongs to, and with it which keys it accepts.
import { KEY_PREFIX, stateOf } from '../accounts/api-keys.ts'
import { databasePlace } from '../store/database-address.ts'
import { type Environment, ENVIRONMENTS } from '../contract/operations.ts'
import type { Store } from '../store/store.ts'
import {
  type Command,
  CommandFailed,
  type Input,
  JSON_OPTION,
  nextCommand,
  settingOptions,
  UsageError,
  withStore,
} from './command.ts'
import { print, printJson, report } from './terminal.ts'

const show: Command = {
  name: 'environment show',
  summary: 'Show which environment the database belongs to',
  takes: [],
  options: { json: JSON_OPTION, ...settingOptions(['database']) },
  examples: ['petstore environment show'],
  async run(input) {
    const { terminal, switches } = input
    const environment = await withStore(input, (store) => store.environment())
    if (switches['json']) return printJson(terminal, { environment: environment ?? null })
    if (environment !== undefined) return print(terminal, environment)
    report(terminal, noEnvironment(input))
  },
}

const set: Command = {
  name: 'environment set',
  summary: 'Change the environment of the database; keys of the other one are refused afterwards',
  takes: ['NAME'],
  choices: ENVIRONMENTS,
  options: {
    yes: { type: 'boolean', meaning: 'Confirm the change' },
    json: JSON_OPTION,
    ...settingOptions(['database']),
  },
  examples: ['petstore environment set production --yes'],
  async run(input) {
    const { terminal, switches, config } = input
    const environment = readEnvironment(input)
    const place = databasePlace(config.database)
    const { was, refused } = await withStore(input, (store) => change(store, environment, input))
    if (switches['json']) return printJson(terminal, { environment, was: was ?? null, refusedKeys: refused })
    if (was === environment) return report(terminal, `${place} already belongs to ${environment}.`)
    report(
      terminal,
      `${place} belongs to ${environment} now. Restart the service with PETSTORE_ENVIRONMENT=${environment}.`,
    )
    if (refused > 0)
      report(
        terminal,
        `Refused from then on: ${keysOf(refused, other(environment))}. They are kept, and accepted again if the change is undone.`,
      )
  },
}

export const ENVIRONMENT_COMMANDS: readonly Command[] = [show, set]

/** Returns the environment of the database, which decides the prefix of a new key; throws `CommandFailed` if there is none. */
export async function environmentOfKeys(input: Input, store: Store): Promise<Environment> {
  const environment = await store.environment()
  if (environment === undefined) throw new CommandFailed(noEnvironment(input))
  return environment
}

function noEnvironment(input: Input): string {
  const place = databasePlace(input.config.database)
  const command = nextCommand(input, `environment set ${ENVIRONMENTS.join('|')}`)
  return `${place} has no environment yet, which decides its keys. The service records its own when it is started with PETSTORE_ENVIRONMENT; or: ${command}`
}

function readEnvironment({ positionals }: Input): Environment {
  const environment = ENVIRONMENTS.find((name) => name === positionals[0])
  if (environment !== undefined) return environment
  throw new UsageError(`NAME must be ${ENVIRONMENTS.join(' or ')}, got ${JSON.stringify(positionals[0])}.`)
}

async function change(
  store: Store,
  environment: Environment,
  input: Input,
): Promise<{ was: Environment | undefined; refused: number }> {
  const { terminal, switches, config } = input
  const was = await store.environment()
  if (was === environment) return { was, refused: 0 }
  const keys = await store.accounts.listKeys()
  const refused = keys.filter(
    (key) => key.environment !== environment && stateOf(key, terminal.clock()) === 'active',
  ).length
  if ((was !== undefined || refused > 0) && !switches['yes']) {
    const consequence =
      refused === 0 ? '' : ` and has ${keysOf(refused, other(environment))}, which ${environment} refuses`
    throw new UsageError(
      `${databasePlace(config.database)} belongs to ${was ?? 'no environment'}${consequence}; add --yes to change it to ${environment}.`,
    )
  }
  const recorded = await store.recordEnvironment(environment, was)
  if (recorded !== environment)
    throw new CommandFailed(
      `Another process has just changed the environment to ${recorded}; nothing was changed here.`,
    )
  return { was, refused }
}

function other(environment: Environment): Environment {
  return ENVIRONMENTS.find((name) => name !== environment)!
}

function keysOf(count: number, environment: Environment): string {
  return `${count} active ${count === 1 ? 'key' : 'keys'} of ${environment} (${KEY_PREFIX[environment]}…)`
}

// petstore environment …: shows or changes the environment that a database belongs to, and with it which keys it accepts.
import { KEY_PREFIX, stateOf } from '../accounts/api-keys.ts'
import { databasePlace } from '../store/database-address.ts'
import { type Environment, ENVIRONMENTS } from '../contract/operations.ts'
import { givesWay } from '../store/settle-environment.ts'
import type { Store } from '../store/store.ts'
import {
  type Command,
  CommandFailed,
  type Input,
  JSON_OPTION,
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
    const { terminal, switches, config } = input
    const environment = await withStore(input, (store) => store.environment())
    if (switches['json']) return printJson(terminal, { environment: environment ?? null })
    if (environment !== undefined) return print(terminal, environment)
    report(
      terminal,
      `${databasePlace(config.database)} has no environment yet; the next start of the service records one, and so does the next key.`,
    )
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
  if (was === environment) {
    await store.recordEnvironment(environment, { instead: was })
    return { was, refused: 0 }
  }
  const keys = await store.accounts.listKeys()
  const refused = keys.filter(
    (key) => key.environment !== environment && stateOf(key, terminal.clock()) === 'active',
  ).length
  if ((was !== undefined || refused > 0) && !switches['yes'] && !(await givesWay(store))) {
    const consequence =
      refused === 0 ? '' : ` and has ${keysOf(refused, other(environment))}, which ${environment} refuses`
    throw new UsageError(
      `${databasePlace(config.database)} belongs to ${was ?? 'no environment'}${consequence}; add --yes to change it to ${environment}.`,
    )
  }
  const recorded = await store.recordEnvironment(environment, { instead: was })
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

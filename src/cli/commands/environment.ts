// petstore environment …: shows or changes the environment of a database, which decides which keys the service accepts.
import { KEY_PREFIX, stateOf } from '../../accounts/api-keys.ts'
import { describeDatabase } from '../../store/database/database-address.ts'
import { type Environment, ENVIRONMENTS } from '../../contract/environments.ts'
import { givesWay } from '../../store/database/environment.ts'
import type { Store } from '../../store/store.ts'
import { type Command, CommandFailed, type Input, STORE_OPTIONS, UsageError, withStore } from '../command.ts'
import { counted, print, printJson, report } from '../terminal.ts'

const show: Command = {
  name: 'environment show',
  summary: 'Show which environment the database belongs to',
  options: STORE_OPTIONS,
  examples: ['petstore environment show'],
  async run(input) {
    const { terminal, switches, config } = input
    const environment = await withStore(input, (store) => store.environment())
    if (switches['json']) return printJson(terminal, { environment: environment ?? null })
    if (environment !== undefined) return print(terminal, environment)
    const database = describeDatabase(config.database)
    report(
      terminal,
      `${database} has no environment yet; the next start of the service records one, and so does the next key.`,
    )
  },
}

const set: Command = {
  name: 'environment set',
  summary: 'Change the environment of the database; keys of the other one are refused afterwards',
  takes: ['NAME'],
  options: { yes: { meaning: 'Confirm the change' }, ...STORE_OPTIONS },
  examples: ['petstore environment set production --yes'],
  async run(input) {
    const { terminal, positionals, switches, config } = input
    const environment = ENVIRONMENTS.find((name) => name === positionals[0])
    if (environment === undefined)
      throw new UsageError(`NAME must be ${ENVIRONMENTS.join(' or ')}, got ${JSON.stringify(positionals[0])}.`)
    const database = describeDatabase(config.database)
    const { was, refused } = await withStore(input, (store) => change(store, environment, input))
    if (switches['json']) return printJson(terminal, { environment, was: was ?? null, refusedKeys: refused })
    if (was === environment) return report(terminal, `${database} already belongs to ${environment}.`)
    report(
      terminal,
      `${database} belongs to ${environment} now. Restart the service with PETSTORE_ENVIRONMENT=${environment}.`,
    )
    if (refused > 0)
      report(
        terminal,
        `Refused from then on: ${refusedKeys(refused, environment)}. They are kept, and accepted again if the change is undone.`,
      )
  },
}

export const ENVIRONMENT_COMMANDS: readonly Command[] = [show, set]

/** Resolves with the previous environment, and with how many active keys the service refuses from now on. */
async function change(store: Store, environment: Environment, { terminal, switches, config }: Input) {
  const was = await store.environment()
  if (was === environment) {
    await store.recordEnvironment(environment, { instead: was })
    return { was, refused: 0 }
  }
  const active = (await store.accounts.listKeys()).filter((key) => stateOf(key, terminal.clock()) === 'active')
  const refused = active.filter((key) => key.environment !== environment).length
  if ((was !== undefined || refused > 0) && !switches['yes'] && !(await givesWay(store))) {
    const consequence =
      refused === 0 ? '' : ` and has ${refusedKeys(refused, environment)}, which ${environment} refuses`
    throw new UsageError(
      `${describeDatabase(config.database)} belongs to ${was ?? 'no environment'}${consequence}; add --yes to change it to ${environment}.`,
    )
  }
  const recorded = await store.recordEnvironment(environment, { instead: was })
  if (recorded !== environment)
    throw new CommandFailed(
      `Another process has just changed the environment to ${recorded}; nothing was changed here.`,
    )
  return { was, refused }
}

/** Names the keys that a database of `environment` refuses: those of the other environment. */
function refusedKeys(count: number, environment: Environment): string {
  const other = ENVIRONMENTS.find((name) => name !== environment)!
  return `${counted(count, 'active key')} of ${other} (${KEY_PREFIX[other]}…)`
}

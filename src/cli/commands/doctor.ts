// petstore doctor: checks a deployment, and reports problems with their fixes. The exit code is 1 if the service cannot work.
import { type Config, environmentSetting } from '../../config.ts'
import { escapeControls } from '../../contract/json.ts'
import { describeDatabase } from '../../store/database/database-address.ts'
import { type Check, fine, problem, warning } from '../../store/database/check.ts'
import { checkDatabase, openStore } from '../../store/opening/open-store.ts'
import { decideEnvironment } from '../../store/database/environment.ts'
import { CannotOpenStore, type Store } from '../../store/store.ts'
import { type Command, CommandFailed, type Input, refuseInMemory, settingOptions, STORE_OPTIONS } from '../command.ts'
import { progressOf } from './import.ts'
import { nextCommand } from '../next-command.ts'
import { accent, counted, print, printJson, type Terminal } from '../terminal.ts'

export const doctor: Command = {
  name: 'doctor',
  summary: 'Check settings, versions, database and disk, and say what to do',
  options: { ...STORE_OPTIONS, ...settingOptions(['environment']) },
  examples: ['petstore doctor', 'petstore doctor --json'],
  async run(input) {
    const { terminal, switches, config } = input
    refuseInMemory(config.database)
    const given = [...config.given.keys()].join(', ') || 'none, all are defaults'
    const checks = [
      // Invalid values are refused, and unknown variables warned of, before any command runs.
      fine('Settings', `${config.environment}; given: ${given}`),
      fine('Node.js', terminal.nodeVersion),
      ...(await checkDatabase(config.database, terminal.clock, config.workers)),
    ]
    // Opening the store would migrate an outdated schema, and doctor changes nothing.
    if (checks.every(({ name, state }) => state === 'ok' || (state === 'warning' && name !== 'Schema')))
      checks.push(...(await checkStore(config)))
    const shown = checks.map((check) => withCommand(input, check))
    const problems = checks.filter(({ state }) => state === 'problem').length
    if (switches['json'])
      printJson(terminal, { database: describeDatabase(config.database), healthy: problems === 0, checks: shown })
    else printChecks(terminal, shown)
    if (problems > 0) throw new CommandFailed(`${counted(problems, 'problem')} found.`)
  },
}

function withCommand(input: Input, { command = [], ...check }: Check): Check {
  return command.length === 0 ? check : { ...check, fix: `${check.fix} ${nextCommand(input, ...command)}` }
}

async function checkStore(config: Config): Promise<Check[]> {
  let store: Store
  try {
    store = await openStore(config.database, { create: false, unfinished: true, readOnly: true })
  } catch (error) {
    if (!(error instanceof CannotOpenStore)) throw error
    return [problem('Database', error.message, 'The service cannot open it either.')]
  }
  try {
    return [
      await checkEnvironment(config, store),
      (await store.isUnfinishedCopy())
        ? problem('Copy', 'a copy into this database was interrupted', 'Run the same petstore copy again.')
        : fine('Copy', 'none is unfinished'),
      ...(await store.imports.unfinished()).map((unfinished) =>
        warning(
          'Import',
          `of ${unfinished.file} ${progressOf(unfinished)}`,
          'Unless it is running, run the same petstore import again to finish it.',
        ),
      ),
    ]
  } finally {
    await store.close()
  }
}

/** Decides as a start of the service does, but records nothing. */
async function checkEnvironment(config: Config, store: Store): Promise<Check> {
  const setting = environmentSetting(config)
  const recorded = await store.environment()
  const { environment } = await decideEnvironment(store, setting)
  if (environment !== setting.environment)
    return problem(
      'Environment',
      `the database belongs to ${environment}, the setting is ${setting.environment}${setting.isChosen ? '' : ', its default'}`,
      `Set PETSTORE_ENVIRONMENT=${environment}, or name another database: the service refuses to start.`,
    )
  if (recorded === undefined)
    return warning('Environment', 'none is recorded yet', `Start the service, which records it: ${environment}.`)
  if (recorded === environment) return fine('Environment', recorded)
  return fine('Environment', `${recorded} by default; the next start makes it ${environment}`)
}

function printChecks(terminal: Terminal, checks: readonly Check[]): void {
  const width = Math.max(...checks.map(({ name }) => name.length))
  // SQLite reports damage in several lines.
  const inOneLine = (text: string) => escapeControls(text.replaceAll('\n', ' '))
  for (const { name, state, found, fix } of checks) {
    print(terminal, `${state.padEnd('warning'.length)}  ${accent(terminal, name.padEnd(width))}  ${inOneLine(found)}`)
    if (fix !== undefined) print(terminal, `${' '.repeat('warning'.length + width + 4)}→ ${inOneLine(fix)}`)
  }
}

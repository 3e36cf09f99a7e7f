// petstore migrate: upgrades the database's schema to this version and exits; `serve` does the same when it starts.
import { databasePlace } from '../store/database-address.ts'
import { type Command, JSON_OPTION, settingOptions, withStore } from './command.ts'
import { printJson, report } from './terminal.ts'

export const migrate: Command = {
  name: 'migrate',
  summary: 'Create the database, or upgrade its schema to this version',
  takes: [],
  options: { json: JSON_OPTION, ...settingOptions(['database', 'environment']) },
  examples: ['petstore migrate', 'petstore migrate --database sqlite:/srv/petstore.db --environment production'],
  async run(input) {
    const { terminal, switches, config } = input
    const database = databasePlace(config.database)
    const { opened, environment } = await withStore(
      input,
      async (store) => ({ opened: store.opened, environment: await store.environment() }),
      { create: true },
    )
    const { created, migrations, warnings } = opened
    if (switches['json']) return printJson(terminal, { database, environment, created, migrations })
    report(
      terminal,
      migrations.length === 0 ? `${database} was up to date.` : `Applied to ${database}: ${migrations.join(', ')}.`,
    )
    for (const warning of warnings) report(terminal, `Warning: ${warning}`)
  },
}

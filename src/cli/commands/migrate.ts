// petstore migrate: creates the database, or upgrades its schema to this version; `serve` does the same when it starts.
import { describeDatabase } from '../../store/database/database-address.ts'
import { type Command, settingOptions, STORE_OPTIONS, withStore } from '../command.ts'
import { printJson, report } from '../terminal.ts'

export const migrate: Command = {
  name: 'migrate',
  summary: 'Create the database, or upgrade its schema to this version',
  options: { ...STORE_OPTIONS, ...settingOptions(['environment']) },
  examples: ['petstore migrate', 'petstore migrate --database sqlite:/srv/petstore.db --environment production'],
  async run(input) {
    const { terminal, switches, config } = input
    const database = describeDatabase(config.database)
    const { opened, environment } = await withStore(
      input,
      async (store) => ({ opened: store.opened, environment: await store.environment() }),
      { create: true },
    )
    if (switches['json']) return printJson(terminal, { database, environment, ...opened })
    const { migrations, warnings } = opened
    const applied = migrations.length > 0
    report(terminal, applied ? `Applied to ${database}: ${migrations.join(', ')}.` : `${database} was up to date.`)
    for (const warning of warnings) report(terminal, `Warning: ${warning}`)
  },
}

// petstore migrate: upgrades the database's schema to this version and exits; `serve` does the same when it starts.
import { type Command, JSON_OPTION, settingOptions, withStore } from './command.ts'
import { printJson, report } from './terminal.ts'

export const migrate: Command = {
  name: 'migrate',
  summary: "Upgrade the database's schema to this version",
  takes: [],
  options: { json: JSON_OPTION, ...settingOptions(['database']) },
  examples: ['petstore migrate', 'petstore migrate --database sqlite:/srv/petstore.db'],
  async run({ terminal, switches, config }) {
    await withStore(config, (store) => store.ping())
    if (switches['json']) printJson(terminal, { upToDate: true })
    else report(terminal, 'The database is up to date.')
  },
}

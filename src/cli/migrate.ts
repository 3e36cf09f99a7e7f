// petstore migrate: brings the database to this version's schema and ends; `serve` does the same when it starts.
import { type Command, JSON_OPTION, settingOptions, withStore } from './command.ts'
import { printJson, tell } from './terminal.ts'

export const migrate: Command = {
  name: 'migrate',
  summary: "Bring the database to this version's schema",
  takes: [],
  options: { json: JSON_OPTION, ...settingOptions(['database']) },
  examples: ['petstore migrate', 'petstore migrate --database sqlite:/srv/petstore.db'],
  async run({ terminal, switches, config }) {
    await withStore(config, (store) => store.ping())
    if (switches['json']) printJson(terminal, { upToDate: true })
    else tell(terminal, 'The database is up to date.')
  },
}

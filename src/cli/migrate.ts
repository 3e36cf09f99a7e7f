// petstore migrate: brings the database to this version's schema and ends; `serve` does the same when it starts.
import { type Command, settingOptions, withStore } from './command.ts'
import { tell } from './terminal.ts'

export const migrate: Command = {
  name: 'migrate',
  summary: "Bring the database to this version's schema",
  takes: [],
  options: settingOptions(['database']),
  examples: ['petstore migrate', 'petstore migrate --database sqlite:/srv/petstore.db'],
  async run({ terminal, config }) {
    await withStore(config, (store) => store.ping())
    tell(terminal, 'The database is up to date.')
  },
}

// petstore distribute: distributes the animals over the nodes of Citus.
import { describeDatabase } from '../../store/database/database-address.ts'
import { type Command, CommandFailed, conclude, readCount, STORE_OPTIONS, withStore } from '../command.ts'
import { report } from '../terminal.ts'

/** A page asks every shard, so few are fast. */
const MOST = 256

export const distribute: Command = {
  name: 'distribute',
  summary: 'Distribute the animals on PostgreSQL over the nodes of Citus',
  options: { shards: { value: 'N', meaning: 'How many shards: two for each node' }, ...STORE_OPTIONS },
  examples: ['petstore distribute --shards 4'],
  async run(input) {
    const { terminal, flags, config } = input
    const shards = readCount('shards', flags['shards'], 1, MOST)
    const { database } = config
    if (database.engine === 'sqlite')
      throw new CommandFailed('SQLite has no nodes of Citus. The command copy moves a store to PostgreSQL.')
    const { distribute: move } = await import('../../store/postgres/citus/distribute.ts')
    // Opening the store migrates it.
    await withStore(input, () => move(database.url, shards, (line) => report(terminal, line)))
    conclude(
      input,
      { shards },
      `${describeDatabase(database)}: the animals are in ${shards} shards now. Changes by hand are not counted from now on.`,
    )
  },
}

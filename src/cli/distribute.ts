// petstore distribute: distributes the animals over the workers of Citus.
import { describeDatabase } from '../store/database-address.ts'
import { type Command, CommandFailed, conclude, readCount, STORE_OPTIONS, withStore } from './command.ts'
import { report } from './terminal.ts'

/** A page asks every shard, so few are fast. */
const MOST = 256

export const distribute: Command = {
  name: 'distribute',
  summary: 'Distribute the animals on PostgreSQL over the workers of Citus',
  takes: [],
  options: { shards: { value: 'N', meaning: 'How many shards: two for each worker' }, ...STORE_OPTIONS },
  examples: ['petstore distribute --shards 4'],
  async run(input) {
    const { terminal, flags, config } = input
    const shards = readCount('shards', flags['shards'], 1, MOST)
    if (config.database.engine === 'sqlite')
      throw new CommandFailed('SQLite has no workers of Citus. The command copy moves a store to PostgreSQL.')
    const lockedMs = await withStore(input, ({ partitions }) =>
      partitions!.distribute(shards, (line) => report(terminal, line)),
    )
    conclude(
      input,
      { shards, lockedMs },
      `${describeDatabase(config.database)}: the animals are in ${shards} shards now; requests waited ${Math.ceil(lockedMs)} ms. Changes by hand are not counted from now on.`,
    )
  },
}

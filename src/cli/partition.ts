// petstore partition: moves the animals on PostgreSQL into partitions by id, while instances run.
import { describeDatabase } from '../store/database-address.ts'
import { type Command, CommandFailed, conclude, readCount, STORE_OPTIONS, withStore } from './command.ts'
import { report } from './terminal.ts'

/** The chore makes the next partition within 10 s; creates fill fewer ids in that time. */
const SMALLEST = 1_000_000
const LARGEST = 1_000_000_000_000

export const partition: Command = {
  name: 'partition',
  summary: 'Move the animals on PostgreSQL into partitions by id, while instances run',
  takes: [],
  options: { size: { value: 'N', meaning: 'How many ids a partition has, such as 50000000' }, ...STORE_OPTIONS },
  examples: ['petstore partition --size 50000000', 'petstore partition'],
  async run(input) {
    const { terminal, flags, config } = input
    const size = flags['size'] === undefined ? undefined : readCount('size', flags['size'], SMALLEST, LARGEST)
    if (config.database.engine === 'sqlite')
      throw new CommandFailed('SQLite has no partitions, and needs none. The command copy moves a store to PostgreSQL.')
    const say = (line: string) => report(terminal, line)
    const { lockedMs, partitions } = await withStore(input, async ({ partitions: store }) => ({
      lockedMs: await store!.split(size === undefined ? undefined : BigInt(size), say),
      partitions: store!.known!,
    }))
    const { count, size: ids, ahead } = partitions
    const waited = `in partitions now; requests waited ${Math.ceil(lockedMs)} ms`
    conclude(
      input,
      { partitions: count, size: Number(ids), ahead, lockedMs },
      `${describeDatabase(config.database)}: the animals are ${lockedMs > 0 ? waited : 'in partitions already'}. There are ${count}, of ${ids} ids; ${ahead.toFixed(1)} of them are ahead.`,
    )
  },
}

// petstore backup and petstore restore: copy a whole SQLite database to a file, and put it back.
import { describeDatabase } from '../../store/database/database-address.ts'
import {
  type Command,
  askToCreate,
  CommandFailed,
  conclude,
  type Input,
  refuseInMemory,
  STORE_OPTIONS,
} from '../command.ts'
import { nextCommand } from '../next-command.ts'
import { reportAsIs } from '../terminal.ts'

export const backup: Command = {
  name: 'backup',
  summary: 'Write the whole database to a file, also while the service writes to it',
  takes: ['FILE'],
  options: { force: { meaning: 'Replace the file if there is one' }, ...STORE_OPTIONS },
  examples: ['petstore backup petstore-2027-01-31.db', 'petstore backup --force /mnt/backups/petstore.db'],
  async run(input) {
    const file = input.positionals[0]!
    const tools = 'pg_dump --format=custom --file=FILE for a copy of one moment, pgBackRest for continuous archiving'
    const path = sqlitePath(input, tools)
    const { backUp } = await import('../../store/sqlite/backup.ts')
    const bytes = await backUp(path, file, input.switches['force'] === true, (told) => reportAsIs(input.terminal, told))
    conclude(
      input,
      { file, bytes },
      `Backed up ${path} to ${file} (${Math.ceil(bytes / 1024)} KiB), checked. It holds accounts and key hashes: keep it to its owner.`,
    )
  },
}

export const restore: Command = {
  name: 'restore',
  summary: 'Put a backup in the place of a database that is missing or empty',
  takes: ['FILE'],
  options: STORE_OPTIONS,
  examples: [
    'petstore restore petstore-2027-01-31.db',
    'petstore restore petstore.db --database sqlite:/srv/petstore.db',
  ],
  async run(input) {
    const file = input.positionals[0]!
    const path = sqlitePath(input, 'pg_restore or pgBackRest')
    const sqlite = await import('../../store/sqlite/backup.ts')
    await askToCreate(input)
    await sqlite.restore(file, path, (told) => reportAsIs(input.terminal, told))
    reportAsIs(
      input.terminal,
      `Warning: keys that were revoked, and passwords that were changed, since the backup are valid again as they were then. See ${nextCommand(input, 'key', 'list')}`,
    )
    conclude(input, { database: path, file }, `Restored ${path} from ${file}, checked. People need to sign in again.`)
  },
}

/** Throws `CommandFailed` on a database in memory, and on PostgreSQL with a message that names `tools` to use instead. */
function sqlitePath({ config: { database } }: Input, tools: string): string {
  refuseInMemory(database)
  if (database.engine === 'sqlite') return database.path
  throw new CommandFailed(
    `${describeDatabase(database)}: this command works on SQLite. For PostgreSQL use its own tools: ${tools}; see docs/data.md.`,
  )
}

// petstore backup and petstore restore: the whole database as one file, and back. Both work on SQLite.
import { databasePlace } from '../store/database-address.ts'
import { type Command, CommandFailed, type Input, JSON_OPTION, nextCommand, settingOptions } from './command.ts'
import { printJson, report } from './terminal.ts'

export const backup: Command = {
  name: 'backup',
  summary: 'Write the whole database to a file, also while the service writes to it',
  takes: ['FILE'],
  options: {
    force: { type: 'boolean', meaning: 'Replace the file if there is one' },
    json: JSON_OPTION,
    ...settingOptions(['database']),
  },
  examples: ['petstore backup petstore-2027-01-31.db', 'petstore backup --force /mnt/backups/petstore.db'],
  async run(input) {
    const { terminal, positionals, switches } = input
    const [file] = positionals as [string]
    const path = sqlitePath(
      input,
      'pg_dump --format=custom --file=FILE for a copy of one moment, pgBackRest for continuous archiving',
    )
    const { backUp } = await import('../store/sqlite/backup.ts')
    const bytes = await backUp(path, file, switches['force'] === true)
    if (switches['json']) return printJson(terminal, { file, bytes })
    report(
      terminal,
      `Backed up ${path} to ${file} (${Math.ceil(bytes / 1024)} KiB), checked. It holds accounts and key hashes: keep it to its owner.`,
    )
  },
}

export const restore: Command = {
  name: 'restore',
  summary: 'Put a backup in the place of a database that is missing or empty',
  takes: ['FILE'],
  options: { json: JSON_OPTION, ...settingOptions(['database']) },
  examples: [
    'petstore restore petstore-2027-01-31.db',
    'petstore restore petstore.db --database sqlite:/srv/petstore.db',
  ],
  async run(input) {
    const { terminal, positionals, switches } = input
    const [file] = positionals as [string]
    const path = sqlitePath(input, 'pg_restore or pgBackRest')
    const { restore: putBack } = await import('../store/sqlite/backup.ts')
    await putBack(file, path)
    report(
      terminal,
      `Warning: keys that were revoked, and passwords that were changed, since the backup are valid again as they were then. See ${nextCommand(input, 'key list')}`,
    )
    if (switches['json']) return printJson(terminal, { database: path, file })
    report(terminal, `Restored ${path} from ${file}, checked. People need to sign in again.`)
  },
}

/** Throws `CommandFailed` on PostgreSQL, which has tools of its own. */
function sqlitePath({ config: { database } }: Input, tools: string): string {
  if (database.engine === 'sqlite') return database.path
  throw new CommandFailed(
    `${databasePlace(database)}: this command works on SQLite. For PostgreSQL use its own tools: ${tools}; see docs/data.md.`,
  )
}

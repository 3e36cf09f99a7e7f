// petstore copy: copies a whole store from one database to another, such as from SQLite to PostgreSQL.
import { environmentSetting, readDatabaseAddress } from '../../config.ts'
import { type DatabaseAddress, describeDatabase } from '../../store/database/database-address.ts'
import { CopyRefused, copyStore } from '../../store/database/copy-store.ts'
import { openStore } from '../../store/opening/open-store.ts'
import { titleOf } from '../../store/records.ts'
import { ensureEnvironment } from '../../store/database/environment.ts'
import { partOfDatabase } from '../../store/sqlite/database-files.ts'
import { NoDatabase } from '../../store/store.ts'
import {
  askToCreate,
  type Command,
  CommandFailed,
  forCommand,
  JSON_OPTION,
  refuseInMemory,
  UsageError,
} from '../command.ts'
import { printJson, printTable, report, showProgress } from '../terminal.ts'

export const copy: Command = {
  name: 'copy',
  summary: 'Copy a whole store into an empty database, ids and keys included',
  options: {
    from: {
      value: 'DATABASE',
      meaning: 'The store to copy, sqlite:PATH or postgres://…; stop the service on it first',
    },
    to: { value: 'DATABASE', meaning: 'An empty database, or one where this copy was interrupted' },
    json: JSON_OPTION,
  },
  examples: ['petstore copy --from sqlite:data/petstore.db --to postgres://petstore@db.example/petstore'],
  async run(input) {
    const { terminal, flags, switches, config } = input
    const from = readAddress('from', flags['from'])
    const to = readAddress('to', flags['to'])
    refuseInMemory(from)
    refuseInMemory(to)
    refuseSameFile(from, to)
    await using stores = new AsyncDisposableStack()
    const opened = await openStore(from, { unfinished: true, create: false, ...forCommand(input) }).catch(
      (error: unknown) => {
        if (!(error instanceof NoDatabase)) throw error
        throw new CommandFailed(
          `There is no petstore database at ${describeDatabase(from)}. Name the store to copy with --from.`,
        )
      },
    )
    const source = stores.adopt(opened, (store) => store.close())
    await askToCreate(input, to, '--to')
    const target = stores.adopt(await openStore(to, { unfinished: true, ...forCommand(input) }), (store) =>
      store.close(),
    )
    const environment = await ensureEnvironment(source, environmentSetting(config))
    try {
      const counts = await copyStore(source, target, (step, done, all) => showProgress(terminal, done, all, step))
      if (switches['json']) {
        const copied = Object.fromEntries(Array.from(counts, ([{ name }, count]) => [name, count]))
        return printJson(terminal, { copied })
      }
      const rows = Array.from(counts, ([kind, count]) => [titleOf(kind), String(count)])
      printTable(terminal, ['Kind', 'Records'], rows)
      report(
        terminal,
        `Copied and compared; all records match. The target belongs to ${environment}, as the source does. Sessions were not copied: people need to sign in again.`,
      )
    } catch (error) {
      throw error instanceof CopyRefused ? new CommandFailed(error.message) : error
    }
  },
}

/** Throws `UsageError` if one is the file of the other, or a part of it. A database of PostgreSQL is refused as a target that has data. */
function refuseSameFile(from: DatabaseAddress, to: DatabaseAddress): void {
  if (from.engine !== 'sqlite' || to.engine !== 'sqlite') return
  const part = partOfDatabase(to.path, from.path) ?? partOfDatabase(from.path, to.path)
  if (part !== undefined)
    throw new UsageError(`--from and --to name the same database: one is ${part}. Nothing was written.`)
}

function readAddress(flag: string, text: string | undefined): DatabaseAddress {
  if (text === undefined) throw new UsageError(`--${flag} is missing; it must be sqlite:PATH or postgres://….`)
  return readDatabaseAddress(`--${flag}`, text)
}

// petstore export: writes all animals to a CSV or JSON Lines file, oldest first, in the memory of one batch.
import { createWriteStream, existsSync } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { CSV_HEADER, csvLine } from '../contract/pet-csv.ts'
import { renderPet } from '../contract/pets.ts'
import { petOfRecord } from '../store/pet-columns.ts'
import { kindOf, readBatches } from '../store/records.ts'
import { partOfDatabase } from '../store/sqlite/database-files.ts'
import type { Store } from '../store/store.ts'
import { writeWholeFile } from '../store/whole-file.ts'
import { type Command, CommandFailed, JSON_OPTION, settingOptions, UsageError, withStore } from './command.ts'
import { type Format, FORMAT_OPTION, formatOf, STANDARD_STREAM } from './pet-file.ts'
import { printJson, report, showProgress, startRate, type Terminal } from './terminal.ts'

export const exportPets: Command = {
  name: 'export',
  summary: 'Write all animals to a CSV or JSON Lines file',
  takes: ['FILE|-'],
  options: {
    format: FORMAT_OPTION,
    force: { type: 'boolean', meaning: 'Replace the file if there is one' },
    json: JSON_OPTION,
    ...settingOptions(['database']),
  },
  examples: ['petstore export animals.csv', 'petstore export - --format jsonl | gzip > animals.jsonl.gz'],
  async run(input) {
    const {
      terminal,
      positionals,
      flags,
      switches,
      config: { database },
    } = input
    const path = positionals[0]!
    const format = formatOf(path, flags['format'])
    const toStdout = path === STANDARD_STREAM
    if (toStdout && switches['json']) throw new UsageError('--json needs a FILE: standard output carries the animals.')
    const part = toStdout || database.engine !== 'sqlite' ? undefined : partOfDatabase(path, database.path)
    if (part !== undefined)
      throw new CommandFailed(`${path} is ${part}; nothing was written. Name another file for the animals.`)
    if (!toStdout && !switches['force'] && existsSync(path))
      throw new CommandFailed(`${path} exists already; nothing was written. Name another file, or add --force.`)
    const count = await withStore(input, (store) =>
      toStdout ? writeTo(terminal, store, format) : writeFile(terminal, store, format, path),
    )
    if (switches['json']) return printJson(terminal, { exported: count })
    report(terminal, `Exported ${count} ${count === 1 ? 'animal' : 'animals'}.`)
  },
}

async function writeFile(terminal: Terminal, store: Store, format: Format, path: string): Promise<number> {
  try {
    return await writeWholeFile(path, (partial) =>
      writeTo(terminal, store, format, createWriteStream(partial, { flags: 'wx' })),
    )
  } catch (error) {
    const { syscall, message } = error as NodeJS.ErrnoException
    throw syscall === undefined ? error : new CommandFailed(`Cannot write ${path}: ${message}.`, { cause: error })
  }
}

async function writeTo(
  terminal: Terminal,
  { pets, records }: Store,
  format: Format,
  target = terminal.stdout,
): Promise<number> {
  const all = Object.values(await pets.countByStatus()).reduce((sum, count) => sum + count, 0)
  const rate = startRate()
  const line = format === 'csv' ? csvLine : renderPet
  let count = 0
  async function* render(): AsyncGenerator<string> {
    if (format === 'csv') yield `${CSV_HEADER}\n`
    for await (const batch of readBatches(records, kindOf('pets'))) {
      yield batch.map((record) => `${line(petOfRecord(record))}\n`).join('')
      count += batch.length
      // More may have been added since they were counted.
      showProgress(terminal, count, Math.max(count, all), rate(count, Math.max(count, all)))
    }
  }
  await pipeline(Readable.from(render()), target, { end: target !== terminal.stdout })
  return count
}

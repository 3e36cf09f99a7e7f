// petstore export: writes all animals to a CSV or JSON Lines file, oldest first. Holds one batch in memory at a time.
import { createWriteStream, existsSync } from 'node:fs'
import { Readable, type Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { entryOf } from '../../contract/text/entry-of.ts'
import { escapeControls, quote } from '../../contract/json.ts'
import type { CategoryNames } from '../../contract/category-name.ts'
import { CATEGORY, DELIMITERS, renderCsv } from '../../contract/pet-csv.ts'
import { type Pet, renderPet } from '../../contract/pets.ts'
import { petOfRecord } from '../../store/pet-columns.ts'
import { kindOf, readBatches } from '../../store/records.ts'
import { partOfDatabase } from '../../store/sqlite/database-files.ts'
import type { Store } from '../../store/store.ts'
import { isReplaceable, reasonOf, writeWholeFile } from '../../store/database/files.ts'
import { type Command, CommandFailed, conclude, STORE_OPTIONS, UsageError, withStore } from '../command.ts'
import { STANDARD_STREAM } from '../../pet-files/pet-file.ts'
import { type Format, FORMAT_OPTION, formatOf } from '../file-options.ts'
import { clearProgress, counted, Interrupted, showProgress, type Terminal } from '../terminal.ts'

const DELIMITER_NAMES = Object.keys(DELIMITERS)

type Render = (batches: AsyncIterable<readonly Pet[]>, categories: CategoryNames) => AsyncIterable<string>

export const exportPets: Command = {
  name: 'export',
  summary: 'Write all animals to a CSV or JSON Lines file',
  takes: ['FILE|-'],
  options: {
    format: FORMAT_OPTION,
    delimiter: {
      value: 'DELIMITER',
      meaning: `What separates the fields of CSV: ${DELIMITER_NAMES.join(', ')}; semicolon for Excel where the list separator is one`,
    },
    force: { meaning: 'Replace the file if there is one' },
    ...STORE_OPTIONS,
  },
  examples: [
    'petstore export animals.csv',
    'petstore export office.csv --delimiter semicolon',
    'petstore export - --format jsonl | gzip > animals.jsonl.gz',
  ],
  async run(input) {
    const { terminal, positionals, flags, switches } = input
    const { database } = input.config
    const path = positionals[0]!
    const toStdout = path === STANDARD_STREAM
    const exact = rendererOf(formatOf(path, flags['format']), flags['delimiter'])
    const render = toStdout && terminal.stdout.isTTY === true ? escapedBy(exact) : exact
    if (toStdout && switches['json']) throw new UsageError('--json needs a FILE: standard output carries the animals.')
    const part = toStdout || database.engine !== 'sqlite' ? undefined : partOfDatabase(path, database.path)
    if (part !== undefined)
      throw new CommandFailed(`${path} is ${part}; nothing was written. Name another file for the animals.`)
    if (!toStdout && !isReplaceable(path))
      throw new CommandFailed(
        `${path} is a symbolic link, a folder or a special file; nothing was written. Name another file, or - for standard output.`,
      )
    if (!toStdout && !switches['force'] && existsSync(path))
      throw new CommandFailed(`${path} exists already; nothing was written. Name another file, or add --force.`)
    const count = await withStore(input, (store) =>
      toStdout ? writeTo(terminal, store, render) : writeFile(terminal, store, render, path),
    )
    conclude(input, { exported: count }, `Exported ${counted(count, 'animal')}.`)
  },
}

function rendererOf(format: Format, delimiter: string | undefined): Render {
  if (format !== 'csv' && delimiter !== undefined) throw new UsageError('--delimiter is for CSV.')
  if (format !== 'csv') return renderJsonLines
  const character = entryOf(DELIMITERS, delimiter ?? 'comma')
  if (character === undefined)
    throw new UsageError(`--delimiter must be one of ${DELIMITER_NAMES.join(', ')}, got ${quote(delimiter!)}.`)
  return (batches, categories) => renderCsv(batches, categories, character)
}

/** For a terminal, which a name must not control. */
function escapedBy(render: Render): Render {
  return async function* (batches, categories) {
    for await (const text of render(batches, categories)) yield text.replaceAll(/[^\n\t]+/g, escapeControls)
  }
}

const renderJsonLines: Render = async function* (batches, categories) {
  const line = (pet: Pet) => {
    const name = categories.names.get(pet.categoryId)
    const json = renderPet(pet)
    return name === undefined ? `${json}\n` : `${json.slice(0, -1)},"${CATEGORY}":${JSON.stringify(name)}}\n`
  }
  for await (const batch of batches) yield batch.map(line).join('')
}

async function writeFile(terminal: Terminal, store: Store, render: Render, path: string): Promise<number> {
  const stop = new AbortController()
  void terminal.stopSignal().then(() => stop.abort())
  try {
    return await writeWholeFile(path, (partial) =>
      writeTo(terminal, store, render, () => createWriteStream(partial, { flags: 'wx' }), stop.signal),
    )
  } catch (error) {
    if (stop.signal.aborted) {
      clearProgress(terminal)
      throw new Interrupted(`Interrupted: ${path} was not written.`)
    }
    if ((error as NodeJS.ErrnoException).syscall === undefined) throw error
    throw new CommandFailed(`Cannot write ${path}: ${reasonOf(error as Error)}.`, { cause: error })
  }
}

/** Resolves with the number of animals. */
async function writeTo(
  terminal: Terminal,
  store: Store,
  render: Render,
  openTarget: () => Writable = () => terminal.stdout,
  signal?: AbortSignal,
): Promise<number> {
  const lastId = Number(await store.records.lastId(kindOf('pets')))
  let count = 0
  async function* batches(): AsyncGenerator<Pet[]> {
    for await (const batch of readBatches(store.records, kindOf('pets'))) {
      yield batch.map(petOfRecord)
      count += batch.length
      const id = Number(batch.at(-1)!['id'])
      // Animals may have been added since. Many ids may have no animal.
      showProgress(terminal, id, Math.max(id, lastId), 'ids')
    }
  }
  const content = Readable.from(render(batches(), await store.categories.names()))
  // Opened when the pipeline begins, which handles its errors: a stream opens its file at once.
  const target = openTarget()
  await pipeline(content, target, {
    end: target !== terminal.stdout,
    signal,
  })
  return count
}

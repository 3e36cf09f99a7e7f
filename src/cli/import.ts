// petstore import: adds the animals of a file. Nothing is written unless every row is valid; then rows are added in short
// transactions that also record how far the import has come, so that it goes on where it was interrupted.
import { createHash } from 'node:crypto'
import type { NewPet } from '../contract/pets.ts'
import { type FileImport, type ImportStore, NoDatabase } from '../store/store.ts'
import {
  type Command,
  CommandFailed,
  type Input,
  JSON_OPTION,
  settingOptions,
  UsageError,
  withStore,
} from './command.ts'
import { DELIMITER_OPTION, delimiterOf, delimiterWords, recogniseCsv } from './csv-dialect.ts'
import { FORMAT_OPTION, formatOf, isNamedAsSpreadsheet, PetFile, spreadsheetRefused } from './pet-file.ts'
import { readCsv, readJsonLines, type Row } from './pet-rows.ts'
import {
  clearProgress,
  day,
  Interrupted,
  isoTime,
  printJson,
  report,
  showProgress,
  startRate,
  type Terminal,
} from './terminal.ts'

const BATCH = 500

type Reader = (chunks: AsyncIterable<Buffer>) => AsyncGenerator<Row[]>

/** How files are usually written, which needs no mention. */
const USUAL: ReadonlySet<string> = new Set(['UTF-8', 'commas, UTF-8'])

export const importPets: Command = {
  name: 'import',
  summary: 'Add the animals of a CSV or JSON Lines file',
  takes: ['FILE|-'],
  options: {
    format: FORMAT_OPTION,
    delimiter: DELIMITER_OPTION,
    'ignore-columns': {
      type: 'boolean',
      meaning: 'Leave out the columns of CSV that animals do not have, and name them',
    },
    'dry-run': { type: 'boolean', meaning: 'Check the file and write nothing' },
    'skip-bad': { type: 'boolean', meaning: 'Report bad rows and add the others' },
    again: { type: 'boolean', meaning: 'Add the animals once more, although this file was imported before' },
    json: JSON_OPTION,
    ...settingOptions(['database']),
  },
  examples: [
    'petstore import animals.csv --dry-run',
    'petstore import animals.csv',
    'petstore import office.csv --delimiter semicolon --ignore-columns',
    'zcat animals.jsonl.gz | petstore import - --format jsonl',
  ],
  async run(input) {
    const { terminal, positionals, flags, switches } = input
    const path = positionals[0]!
    if (flags['format'] === undefined && isNamedAsSpreadsheet(path)) throw spreadsheetRefused(path)
    const format = formatOf(path, flags['format'])
    const options = { delimiter: delimiterOf(flags['delimiter']), ignoreColumns: switches['ignore-columns'] }
    if (format !== 'csv' && (options.delimiter ?? options.ignoreColumns) !== undefined)
      throw new UsageError('--delimiter and --ignore-columns are for CSV.')
    await using file = await PetFile.open(path, terminal.stdin)
    const encoding = await file.encoding()
    const csv = format === 'csv' ? recogniseCsv(await file.start(), options) : undefined
    if (csv !== undefined && csv.ignored.length > 0)
      report(terminal, `Warning: animals do not have these columns, which are left out: ${csv.ignored.join(', ')}.`)
    const read: Reader = csv === undefined ? readJsonLines : (chunks) => readCsv(chunks, csv)
    const recognised = csv === undefined ? encoding : `${delimiterWords(csv.delimiter)}, ${encoding}`
    const { hash, valid, bad } = await check(terminal, file, read)
    const rows = `${valid + bad} ${valid + bad === 1 ? 'row' : 'rows'}`
    const dryRun = switches['dry-run'] === true
    const earlier = dryRun ? await finishedImport(input, hash) : undefined
    if (dryRun && switches['json']) {
      const importedAt = isoTime(earlier?.updatedAt)
      printJson(terminal, { valid, bad, encoding, delimiter: csv?.delimiter, importedAt })
    }
    if (bad > 0 && !switches['skip-bad']) {
      throw new CommandFailed(
        `${bad} of ${rows} ${bad === 1 ? 'is' : 'are'} bad; nothing was written. Correct the file, or add --skip-bad.`,
      )
    }
    if (dryRun) {
      if (switches['json']) return
      const before =
        earlier === undefined ? '' : ` ${importedAlready(earlier)}; to add its animals once more, add --again.`
      return report(
        terminal,
        `${rows} checked (${recognised}): ${valid} valid, ${bad} bad. Nothing was written.${before}`,
      )
    }
    const added =
      valid === 0
        ? 0
        : await withStore(
            input,
            async ({ imports }) => {
              const from = await whereToStart(
                imports,
                { hash, file: file.name, rowsTotal: valid },
                switches['again'] === true,
                terminal,
              )
              await addRows(terminal, imports, file, read, { hash, from, all: valid })
              return valid - from
            },
            { create: true },
          )
    if (switches['json']) return printJson(terminal, { added, earlier: valid - added, skipped: bad })
    const before = added < valid ? ` ${valid - added} were added before the interruption.` : ''
    const skipped = bad > 0 ? ` Skipped ${bad} bad ${bad === 1 ? 'row' : 'rows'}.` : ''
    const unusual = USUAL.has(recognised) ? '' : ` (${recognised})`
    report(terminal, `Added ${added} ${added === 1 ? 'animal' : 'animals'}${unusual}.${before}${skipped}`)
  },
}

/** Reads the whole file, reports every bad row, and makes the hash by which the store recognises the file. */
async function check(
  terminal: Terminal,
  file: PetFile,
  read: Reader,
): Promise<{ hash: string; valid: number; bad: number }> {
  const hash = createHash('sha256')
  const rate = startRate()
  let bytes = 0
  let valid = 0
  let bad = 0
  const chunks = file.chunks((chunk) => {
    hash.update(chunk)
    bytes += chunk.length
  })
  for await (const rows of read(chunks)) {
    for (const row of rows) {
      if ('pet' in row) valid += 1
      else {
        bad += 1
        clearProgress(terminal)
        report(terminal, `line ${row.line}: ${row.problem}`)
      }
    }
    if (bytes < file.size) showProgress(terminal, bytes, file.size, `bytes checked, ${rate(bytes, file.size)}`)
  }
  clearProgress(terminal)
  return { hash: hash.digest('hex'), valid, bad }
}

/** Resolves with the import of this file that has finished, if there is one; creates no database. */
async function finishedImport(input: Input, hash: string): Promise<FileImport | undefined> {
  try {
    const found = await withStore(input, ({ imports }) => imports.find(hash))
    return found?.rowsDone === found?.rowsTotal ? found : undefined
  } catch (error) {
    if (error instanceof NoDatabase) return undefined
    throw error
  }
}

function importedAlready({ rowsTotal, updatedAt }: FileImport): string {
  return `This file was imported already (${rowsTotal} rows, ${day(updatedAt)})`
}

/** Returns how many rows are done already: none for a new file, some after an interruption. */
async function whereToStart(
  imports: ImportStore,
  file: Pick<FileImport, 'hash' | 'file' | 'rowsTotal'>,
  again: boolean,
  terminal: Terminal,
): Promise<number> {
  const earlier = await imports.find(file.hash)
  if (earlier !== undefined && earlier.rowsDone < earlier.rowsTotal) return earlier.rowsDone
  if (earlier !== undefined && !again) {
    throw new CommandFailed(
      `${importedAlready(earlier)}; nothing was written. To add its animals once more, add --again.`,
    )
  }
  const changed = (await imports.unfinished()).find((other) => other.file === file.file)
  if (changed !== undefined && !again) {
    throw new CommandFailed(
      `${file.file} has changed since its import was interrupted after ${changed.rowsDone} of ${changed.rowsTotal} rows; nothing was written. ` +
        'Import the earlier file to finish, or add --again to import this one from its first row: the rows that were added stay.',
    )
  }
  if (changed !== undefined) await imports.abandon(changed.hash)
  if (!(await imports.begin(file, terminal.clock(), again))) throw takenOver(0)
  return 0
}

async function addRows(
  terminal: Terminal,
  imports: ImportStore,
  file: PetFile,
  read: Reader,
  { hash, from, all }: { hash: string; from: number; all: number },
): Promise<void> {
  const rate = startRate()
  let done = from
  let isStopped = false
  void terminal.stopSignal().then(() => (isStopped = true))
  for await (const batch of batchesAfter(from, read(file.chunks()))) {
    if (await file.hasChanged()) {
      throw new CommandFailed(
        `${file.name} was changed during its import, which stopped after ${done} of ${all} rows. Put the earlier file back and run the same import again to finish it.`,
      )
    }
    if (!(await imports.addRows(hash, done, batch, terminal.clock()))) throw takenOver(done - from)
    done += batch.length
    showProgress(terminal, done, all, rate(done - from, all - from))
    if (!isStopped || done === all) continue
    clearProgress(terminal)
    throw new Interrupted(`Interrupted: ${done} of ${all} rows are added. Run the same import again to add the others.`)
  }
}

function takenOver(added: number): CommandFailed {
  return new CommandFailed(
    `Another process imports the same file; this one stopped after ${added} rows. No row was added twice.`,
  )
}

async function* batchesAfter(skip: number, source: AsyncIterable<Row[]>): AsyncGenerator<NewPet[]> {
  let toSkip = skip
  let batch: NewPet[] = []
  for await (const rows of source) {
    for (const row of rows) {
      if (!('pet' in row)) continue
      if (toSkip > 0) {
        toSkip -= 1
        continue
      }
      batch.push(row.pet)
      if (batch.length < BATCH) continue
      yield batch
      batch = []
    }
  }
  if (batch.length > 0) yield batch
}

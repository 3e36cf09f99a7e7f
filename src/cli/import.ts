// petstore import: adds the animals of a file if every row is valid, or with --skip-bad those of the valid rows. Adds
// them in short transactions, which also record the progress, so that an interrupted import continues where it stopped.
import { createHash } from 'node:crypto'
import { CategoryNames } from '../contract/category-name.ts'
import type { NewPet } from '../contract/pets.ts'
import { isInMemory } from '../store/database-address.ts'
import type { FileImport, ImportStore } from '../store/imports.ts'
import type { Store } from '../store/store.ts'
import {
  type Command,
  CommandFailed,
  conclude,
  type Input,
  mayCreate,
  STORE_OPTIONS,
  UsageError,
  withExistingStore,
  withStore,
} from './command.ts'
import { DELIMITER_OPTION, delimiterOf, delimiterWords, recogniseCsv } from './csv-dialect.ts'
import { FORMAT_OPTION, formatOf, isNamedAsSpreadsheet, PetFile, spreadsheetRefused } from './pet-file.ts'
import { readCsv, readJsonLines, type Row } from './pet-rows.ts'
import {
  clearProgress,
  counted,
  formatTime,
  Interrupted,
  isoTime,
  printJson,
  report,
  showProgress,
  startRate,
  type Terminal,
} from './terminal.ts'

/** How many rows one transaction adds. */
const BATCH = 500

type Reader = (chunks: AsyncIterable<Buffer>) => AsyncGenerator<Row[]>

/** The usual dialects, which the summary does not mention. */
const USUAL: ReadonlySet<string> = new Set(['UTF-8', 'commas, UTF-8'])

export const importPets: Command = {
  name: 'import',
  summary: 'Add the animals of a CSV or JSON Lines file',
  takes: ['FILE|-'],
  options: {
    format: FORMAT_OPTION,
    delimiter: DELIMITER_OPTION,
    'ignore-columns': { meaning: 'Leave out the columns of CSV that animals do not have, and name them' },
    'dry-run': { meaning: 'Check the file and write nothing' },
    'skip-bad': { meaning: 'Report bad rows and add the others' },
    again: { meaning: 'Add the animals once more, although this file was imported before' },
    ...STORE_OPTIONS,
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
    const isSpreadsheet = flags['format'] === undefined && isNamedAsSpreadsheet(path)
    const format = isSpreadsheet ? 'csv' : formatOf(path, flags['format'])
    const options = { delimiter: delimiterOf(flags['delimiter']), ignoreColumns: switches['ignore-columns'] }
    if (format !== 'csv' && (options.delimiter ?? options.ignoreColumns) !== undefined)
      throw new UsageError('--delimiter and --ignore-columns are for CSV.')
    await using file = await PetFile.open(path, terminal.stdin)
    if (isSpreadsheet) throw spreadsheetRefused(path)
    const encoding = await file.encoding()
    const csv = format === 'csv' ? recogniseCsv(await file.start(), options) : undefined
    if (csv !== undefined && csv.ignored.length > 0)
      report(terminal, `Warning: animals do not have these columns, which are left out: ${csv.ignored.join(', ')}.`)
    const isNew = isInMemory(input.config.database)
    const categories =
      (isNew ? undefined : await withExistingStore(input, (store) => store.categories.names())) ?? new CategoryNames()
    const read: Reader = (chunks) =>
      csv === undefined ? readJsonLines(chunks, categories) : readCsv(chunks, csv, categories)
    const recognised = csv === undefined ? encoding : `${delimiterWords(csv.delimiter)}, ${encoding}`
    const { hash, valid, bad } = await check(terminal, file, read)
    const rows = counted(valid + bad, 'row')
    const dryRun = switches['dry-run'] === true
    const earlier = dryRun ? await finishedImport(input, hash) : undefined
    if (dryRun && switches['json']) {
      const importedAt = isoTime(earlier?.updatedAt)
      printJson(terminal, { valid, bad, encoding, delimiter: csv?.delimiter, importedAt })
    }
    if (valid + bad === 0) {
      const found = `${counted(file.size, 'byte')}, ${recognised}`
      throw new CommandFailed(
        `${file.name} (${found}) has ${csv === undefined ? 'no line with an animal' : 'a header, but no rows'}; nothing was written. Is it the right file, and was it saved whole?`,
      )
    }
    if (bad > 0 && !switches['skip-bad']) {
      throw new CommandFailed(
        `${bad} of ${rows} ${bad === 1 ? 'is' : 'are'} bad; nothing was written. Correct the file, or add --skip-bad.`,
      )
    }
    if (dryRun) {
      if (switches['json']) return
      const before = earlier && ` ${importedAlready(earlier)}; to add its animals once more, add --again.`
      const outcome = `${valid} valid, ${bad} bad. Nothing was written.${before ?? ''}`
      return report(terminal, `${rows} checked (${recognised}): ${outcome}`)
    }
    let added = 0
    // With --skip-bad, all rows may be bad.
    if (valid > 0) {
      const add = ({ imports }: Store) => addRows(input, imports, file, read, { hash, total: valid })
      added = await withStore(input, add, await mayCreate(input))
    }
    const before = added < valid ? ` ${valid - added} were added before the interruption.` : ''
    const skipped = bad > 0 ? ` Skipped ${counted(bad, 'bad row')}.` : ''
    const unusual = USUAL.has(recognised) ? '' : ` (${recognised})`
    const summary = `Added ${counted(added, 'animal')}${unusual}.${before}${skipped}`
    conclude(input, { added, earlier: valid - added, skipped: bad }, summary)
  },
}

/** Reads the whole file, reports every bad row, and computes the hash by which the store recognises the file. */
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

/** Resolves with the finished import of this file, if there is one; creates no database. */
async function finishedImport(input: Input, hash: string): Promise<FileImport | undefined> {
  if (isInMemory(input.config.database)) return undefined
  const found = await withExistingStore(input, ({ imports }) => imports.find(hash))
  return found?.rowsDone === found?.rowsTotal ? found : undefined
}

function importedAlready({ rowsTotal, updatedAt }: FileImport): string {
  return `This file was imported already (${rowsTotal} rows, ${formatTime(updatedAt)})`
}

/** Describes an unfinished import. The store does not know whether a process runs it. */
export function progressOf({ rowsDone, rowsTotal, updatedAt }: FileImport): string {
  return `had added ${rowsDone} of ${rowsTotal} rows at ${formatTime(updatedAt)}; it is running or was interrupted`
}

/** Adds the valid rows that an interrupted import of this file has not added; resolves with their number. */
async function addRows(
  input: Input,
  imports: ImportStore,
  file: PetFile,
  read: Reader,
  { hash, total }: { hash: string; total: number },
): Promise<number> {
  const { terminal } = input
  const name = file.keepsName ? file.name : `${file.name} (SHA-256 ${hash.slice(0, 8)}…)`
  const from = await beginImport(input, imports, { hash, file: name, rowsTotal: total })
  const rate = startRate()
  let done = from
  let isStopped = false
  void terminal.stopSignal().then(() => (isStopped = true))
  for await (const batch of batchesAfter(from, read(file.chunks()))) {
    if (await file.hasChanged()) {
      throw new CommandFailed(
        `${file.name} was changed during its import, which stopped after ${done} of ${total} rows. Put the earlier file back and run the same import again to finish it.`,
      )
    }
    const progress = { hash, rowsDone: done, rowsTotal: total }
    if (!(await imports.addRows(progress, batch, terminal.clock()))) throw takenOver(done - from)
    done += batch.length
    showProgress(terminal, done, total, rate(done - from, total - from))
    if (!isStopped || done === total) continue
    clearProgress(terminal)
    throw new Interrupted(
      `Interrupted: ${done} of ${total} rows are added. Run the same import again to add the others.`,
    )
  }
  return total - from
}

/** Begins an import, or resumes an interrupted one; resolves with the number of rows that were added before. */
async function beginImport(
  { terminal, switches }: Input,
  imports: ImportStore,
  file: Pick<FileImport, 'hash' | 'file' | 'rowsTotal'>,
): Promise<number> {
  const again = switches['again'] === true
  const earlier = await imports.find(file.hash)
  const isUnfinished = earlier !== undefined && earlier.rowsDone < earlier.rowsTotal
  if (isUnfinished && earlier.rowsTotal === file.rowsTotal) return earlier.rowsDone
  if (earlier !== undefined && !again) {
    throw new CommandFailed(
      isUnfinished
        ? `The import of this file was begun with other options or another release, which read ${counted(earlier.rowsTotal, 'valid row')} and added ${earlier.rowsDone}; now ${file.rowsTotal} are valid. ` +
            'Nothing was written. Run it as it was begun to finish it, or add --again to begin anew: the rows that were added stay.'
        : `${importedAlready(earlier)}; nothing was written. To add its animals once more, add --again.`,
    )
  }
  // Ignores an import with the same hash, which another process has begun since: `begin` detects it.
  const changed = (await imports.unfinished()).find((other) => other.file === file.file && other.hash !== file.hash)
  if (changed !== undefined && !again) {
    throw new CommandFailed(
      `${file.file} has changed since an import of it began, and that import ${progressOf(changed)}. Nothing was written. ` +
        'Import the earlier file to finish, or add --again to import this one from its first row: the rows that were added stay.',
    )
  }
  if (!(await imports.begin(file, terminal.clock(), again))) throw takenOver(0)
  return 0
}

function takenOver(added: number): CommandFailed {
  return new CommandFailed(
    `Another process imports the same file; this one stopped after ${added} rows. No row was added twice, unless the other began anew with --again.`,
  )
}

/** Yields the animals of the valid rows in batches, without the first `skip` of them. */
async function* batchesAfter(skip: number, source: AsyncIterable<Row[]>): AsyncGenerator<NewPet[]> {
  let toSkip = skip
  let waiting: NewPet[] = []
  for await (const rows of source) {
    const pets = rows.flatMap((row) => ('pet' in row ? [row.pet] : []))
    waiting = waiting.concat(pets.slice(toSkip))
    toSkip = Math.max(0, toSkip - pets.length)
    while (waiting.length >= BATCH) yield waiting.splice(0, BATCH)
  }
  if (waiting.length > 0) yield waiting
}

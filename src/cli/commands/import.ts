// petstore import: adds the animals of a file if every row is valid, or with --skip-bad those of the valid rows. Adds
// them in short transactions, which also record the progress, so that an interrupted import continues where it stopped.
import { createHash } from 'node:crypto'
import { CategoryNames } from '../../contract/category-name.ts'
import type { FileImport, ImportStore } from '../../store/imports.ts'
import type { Store } from '../../store/store.ts'
import {
  askToCreate,
  type Command,
  CommandFailed,
  conclude,
  type Input,
  STORE_OPTIONS,
  UsageError,
  withExistingStore,
  withStore,
} from '../command.ts'
import { FORMAT_OPTION, formatOf } from '../file-options.ts'
import { delimiterWords, recogniseCsv } from '../../pet-files/csv-dialect.ts'
import { isNamedAsSpreadsheet, PetFile, spreadsheetRefused } from '../../pet-files/pet-file.ts'
import { batchesAfter, readCsv, readJsonLines, type Row } from '../../pet-files/pet-rows.ts'
import {
  clearProgress,
  counted,
  formatTime,
  Interrupted,
  printJson,
  report,
  showProgress,
  type Terminal,
} from '../terminal.ts'

/** How many rows one transaction adds. */
const BATCH = 500

type Reader = (chunks: AsyncIterable<Buffer>) => AsyncGenerator<Row[]>

export const importPets: Command = {
  name: 'import',
  summary: 'Add the animals of a CSV or JSON Lines file',
  takes: ['FILE|-'],
  options: {
    format: FORMAT_OPTION,
    'ignore-columns': { meaning: 'Leave out the columns of CSV that animals do not have, and name them' },
    'dry-run': { meaning: 'Check the file and write nothing' },
    'skip-bad': { meaning: 'Report bad rows and add the others' },
    again: { meaning: 'Add the animals once more, although this file was imported before' },
    ...STORE_OPTIONS,
  },
  examples: [
    'petstore import animals.csv --dry-run',
    'petstore import animals.csv',
    'petstore import office.csv --ignore-columns',
    'zcat animals.jsonl.gz | petstore import - --format jsonl',
  ],
  async run(input) {
    const { terminal, positionals, flags, switches } = input
    const path = positionals[0]!
    const isSpreadsheet = flags['format'] === undefined && isNamedAsSpreadsheet(path)
    const format = isSpreadsheet ? 'csv' : formatOf(path, flags['format'])
    const ignoreColumns = switches['ignore-columns'] === true
    if (format !== 'csv' && ignoreColumns) throw new UsageError('--ignore-columns is for CSV.')
    await using file = await PetFile.open(path, terminal.stdin)
    if (isSpreadsheet) throw spreadsheetRefused(path)
    const encoding = await file.encoding()
    const csv = format === 'csv' ? recogniseCsv(await file.start(), { ignoreColumns }) : undefined
    if (csv !== undefined && csv.ignored.length > 0)
      report(terminal, `Warning: animals do not have these columns, which are left out: ${csv.ignored.join(', ')}.`)
    const categories = (await withExistingStore(input, (store) => store.categories.names())) ?? new CategoryNames()
    const read: Reader = (chunks) =>
      csv === undefined ? readJsonLines(chunks, categories) : readCsv(chunks, csv, categories)
    const recognised = csv === undefined ? encoding : `${delimiterWords(csv.delimiter)}, ${encoding}`
    const { hash, valid, bad } = await check(terminal, file, read)
    const rows = counted(valid + bad, 'row')
    const dryRun = switches['dry-run'] === true
    if (dryRun && switches['json']) printJson(terminal, { valid, bad, encoding, delimiter: csv?.delimiter })
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
      return report(terminal, `${rows} checked (${recognised}): ${valid} valid, ${bad} bad. Nothing was written.`)
    }
    let added = 0
    // With --skip-bad, all rows may be bad.
    if (valid > 0) {
      const add = ({ imports }: Store) => addRows(input, imports, file, read, { hash, total: valid })
      await askToCreate(input)
      added = await withStore(input, add, { create: true })
    }
    const before = added < valid ? ` ${valid - added} were added before the interruption.` : ''
    const skipped = bad > 0 ? ` Skipped ${counted(bad, 'bad row')}.` : ''
    const summary = `Added ${counted(added, 'animal')}.${before}${skipped}`
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
    if (bytes < file.size) showProgress(terminal, bytes, file.size, 'bytes checked')
  }
  clearProgress(terminal)
  return { hash: hash.digest('hex'), valid, bad }
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
  let done = from
  let isStopped = false
  void terminal.stopSignal().then(() => (isStopped = true))
  for await (const batch of batchesAfter(from, BATCH, read(file.chunks()))) {
    if (await file.hasChanged()) {
      throw new CommandFailed(
        `${file.name} was changed during its import, which stopped after ${done} of ${total} rows. Put the earlier file back and run the same import again to finish it.`,
      )
    }
    const progress = { hash, rowsDone: done, rowsTotal: total }
    if (!(await imports.addRows(progress, batch, terminal.clock()))) throw takenOver(done - from)
    done += batch.length
    showProgress(terminal, done, total)
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
        : `This file was imported already (${earlier.rowsTotal} rows, ${formatTime(earlier.updatedAt)}); nothing was written. To add its animals once more, add --again.`,
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

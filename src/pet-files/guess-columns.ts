// Guesses how to read the file of another program, for a person to confirm: the delimiter, the row that names the columns, and which
// column is which field.
import { Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { CATEGORY, CSV_COLUMNS, DELIMITERS } from '../contract/pet-csv.ts'
import { foldForSearch } from '../contract/text/search-words.ts'
import { SEP_LINE } from './csv-dialect.ts'
import { FileRefused } from './pet-file.ts'
import { type CsvForm, divideCsv, fieldFromCell } from './pet-rows.ts'

/** What a column can be: the columns of our own files but the id, which the store assigns. */
export type Target = Exclude<(typeof CSV_COLUMNS)[number], 'id'>
export const TARGETS = CSV_COLUMNS.filter((column): column is Target => column !== 'id')

/** What offices call the columns, in English, German, French and Spanish, the likeliest first. */
const COLUMN_NAMES: Partial<Record<Target, string>> = {
  name: `pet name,animal name,name of pet,name of animal,tiername,rufname,name des tieres,nom,nom de l'animal,nombre,nombre del animal,
    nombre de la mascota,pet,animal,tier,haustier,mascota,title,bezeichnung,titel,titre,titulo`,
  [CATEGORY]: `species,category name,animal type,pet type,kind,type,group,breed,tierart,kategorie,art,gattung,gruppe,rasse,espece,categorie,
    genre,groupe,race,especie,categoria,tipo,grupo,raza`,
  categoryId: 'category number,category no,kategorienummer,numero de categorie,numero de categoria',
  status: 'state,availability,zustand,verfugbarkeit,verfuegbarkeit,statut,etat,disponibilite,estado,disponibilidad',
}
const STATUS_WORDS = {
  available: `in stock,for sale,free,verfugbar,verfuegbar,frei,vorhanden,disponible,en stock,en vente,a vendre,libre,en venta`,
  pending: 'reserved,on hold,reserviert,vorgemerkt,reserve,reservee,reservado,reservada',
  sold: 'sold out,verkauft,abgegeben,vendu,vendue,vendido,vendida',
}

const folded = (text: string) => foldForSearch(text).replaceAll(/[^\p{L}\p{N}]/gu, '')
const foldedWords = (texts = '') => texts.split(',').map(folded)
const NAMES = TARGETS.map((target) => [target, [folded(target), ...foldedWords(COLUMN_NAMES[target])]] as const)
const STATUSES = new Map(
  Object.entries(STATUS_WORDS).flatMap(([status, words]) => foldedWords(words).map((word) => [word, status])),
)

/** Returns the status that a cell means, also in the words of an office; what it has, if it means none. */
export function statusFromCell(text: string): string {
  const status = String(fieldFromCell('status', text.trim()))
  return STATUSES.get(folded(status)) ?? status
}

/** The cells are cut off, and have no empty ones at their end. */
export interface FirstRow {
  line: number
  cells: string[]
  /** How many columns it has, with the empty ones at its end unless they are very many. */
  width: number
}

/** What is looked at, and shown to choose from. */
const MOST = { lines: 50, rows: 10, columns: 100, characters: 200 }

/** Returns the first rows that are not blank, as far as the start of a file has them. Each reading is a turn of the event loop. */
export async function firstRows(start: string, form: CsvForm): Promise<FirstRow[]> {
  const rows: FirstRow[] = []
  function read(line: number, fields: readonly Buffer[]): undefined {
    const cells = fields.slice(0, MOST.columns + 1).map((field) => field.toString().slice(0, MOST.characters))
    const filled = cells.findLastIndex((cell) => cell.trim() !== '') + 1
    const width = fields.length > MOST.columns ? filled : fields.length
    if (filled > 0) rows.push({ line, cells: cells.slice(0, filled), width })
  }
  await setImmediate()
  try {
    // The parser looks ahead.
    const lines = [...start.split('\n', MOST.lines), '', '', '', ''].join('\n')
    await divideCsv(Readable.from([Buffer.from(lines)]), form, read).next()
  } catch (error) {
    // With this delimiter it is no table. What is wrong with the right one is said when all rows are read.
    if (!(error instanceof FileRefused)) throw error
  }
  return rows.slice(0, MOST.rows)
}

export interface Guess extends CsvForm {
  /** The line of the row that names the columns; 0 if none does. */
  header: number
  /** What each column is: '' for one that is left out. */
  columns: readonly (Target | '')[]
}

export async function guessColumns(start: string): Promise<Guess> {
  const declared = SEP_LINE.exec(start)?.[2]
  const guesses: { guess: Guess; known: number }[] = []
  for (const delimiter of declared === undefined ? Object.values(DELIMITERS) : [declared]) {
    // The first line may tell Excel the delimiter. Spreadsheets copy a cell with a quote as it is.
    const form = { delimiter, headerLine: declared === undefined ? 1 : 2, hasPlainQuotes: delimiter === DELIMITERS.tab }
    const rows = await firstRows(start, form)
    for (const header of [0, ...rows.map(({ line }) => line)]) {
      const guess = { ...form, header, columns: columnsNamed(rows, header).columns }
      const known = header === 0 ? 0 : guess.columns.filter(Boolean).length
      // A single word may be one of the data, unless it is at the top.
      guesses.push({ guess, known: known === 1 && header !== rows[0]!.line ? 0 : known })
    }
  }
  const width = ({ guess }: (typeof guesses)[number]) => guess.columns.length
  const sorted = guesses.toSorted((a, b) => b.known - a.known || a.guess.header - b.guess.header || width(b) - width(a))
  if (width(sorted[0]!) > MOST.columns) throw new FileRefused(`The file has more than ${MOST.columns} columns.`)
  return sorted[0]!.guess
}

/**
 * Returns what the columns are if the row on the line `header` names them, and whether by our own names, which nobody needs to confirm unless
 * another column may be meant. If none does, they are in the order of a form.
 */
export function columnsNamed(rows: readonly FirstRow[], header: number): Pick<Guess, 'columns'> & { isSure: boolean } {
  const head = rows.find(({ line }) => line === header)
  const length = head?.width ?? Math.max(0, ...rows.map(({ width }) => width))
  const columns = Array.from({ length }, (): Target | '' => '')
  const order: readonly Target[] = ['name', CATEGORY, 'status']
  if (head === undefined) return { columns: columns.map((_, index) => order[index] ?? ''), isSure: false }
  const named = head.cells.map(folded)
  for (const [target, names] of NAMES) {
    const found = names.map((name) => named.indexOf(name)).find((index) => index >= 0 && columns[index] === '')
    if (found !== undefined) columns[found] = target
  }
  const isOurs = named.includes('name') && (named.includes(CATEGORY) || named.includes('categoryid'))
  const isMeant = (name: string) => NAMES.some(([, names]) => names.includes(name))
  return { columns, isSure: isOurs && !named.some((name, index) => columns[index] === '' && isMeant(name)) }
}

// The pages that bring in a file of animals: choose it, see what it would add, add that. Rules, words and resumption are those of
// the command (cli/commands/import.ts). What a page says follows from the file and from how far its import has come.
import { basename } from 'node:path'
import { newToken } from '../../accounts/sessions.ts'
import { FieldProblem } from '../../contract/errors.ts'
import { UPLOAD_LIMIT, UPLOAD_ROWS } from '../../contract/limits.ts'
import { inWords, labelOf, SHOWN_FIELDS } from '../../contract/pet-words.ts'
import { html, type Html, isolated } from '../../http/html/html.ts'
import { FileRefused } from '../../pet-files/pet-file.ts'
import { batchesAfter } from '../../pet-files/pet-rows.ts'
import { addCategory } from '../../store/category-store.ts'
import type { FileImport } from '../../store/imports.ts'
import { type Upload, UPLOAD_KEPT_MS } from '../../store/uploads.ts'
import { formPage } from '../every-page/form-page.ts'
import { field, form, hidden } from '../every-page/forms.ts'
import { readOnce } from '../every-page/readings.ts'
import { count, counted, DAY_MS, minute } from '../every-page/times.ts'
import { type ConsoleRoute, forMembers, type HtmlPage, type MemberVisit, type Outcome } from '../every-page/visit.ts'
import { listAddress } from './animal-addresses.ts'
import { authorOf } from './animal-history.ts'
import { type Checked, checkFile, GONE, keepFile } from './import-file.ts'

const PATH = '/animals/import'

export const importRoutes: readonly ConsoleRoute[] = [
  forMembers('GET', PATH, (visit) => choosePage(visit)),
  forMembers('POST', PATH, orChooseAgain(receive), { takesFile: true }),
  forMembers(
    'GET',
    `${PATH}/{file}`,
    orChooseAgain(async (visit) => filePage(visit, await lookAt(visit))),
  ),
  forMembers('POST', `${PATH}/{file}`, orChooseAgain(add), { keepsTyped: true }),
]

function choosePage(visit: MemberVisit, problem?: string): HtmlPage {
  const problems = problem === undefined ? [] : [new FieldProblem('file', problem)]
  const most = `${UPLOAD_LIMIT / 1024 / 1024} MB and ${count(UPLOAD_ROWS)} animals`
  const hint = `CSV, as a spreadsheet saves it, of at most ${most}. Whoever runs this store can bring in more with petstore import.`
  return formPage(visit, {
    title: 'Bring in a file',
    section: 'animals',
    problems,
    above: html`<p>The first row names the columns: <code>name</code> and <code>category</code>, and <code>status</code> if you like. You see
      what would be added before anything is.</p>`,
    action: PATH,
    submit: 'Check the file',
    cancel: '/animals',
    hasFile: true,
    fields: field({ name: 'file', label: 'File', type: 'file', hint, problems, focus: true }),
  })
}

/** Wraps a page that reads a file, which may be refused. */
function orChooseAgain(handle: (visit: MemberVisit) => Promise<Outcome>) {
  return async (visit: MemberVisit): Promise<Outcome> => {
    try {
      return await handle(visit)
    } catch (error) {
      // What is in brackets is about options of the command.
      if (error instanceof FileRefused) return choosePage(visit, error.message.replaceAll(/ \(--[^)]*\)/g, ''))
      throw error
    }
  }
}

/** What is kept of the name of a file. */
const NAME_KEPT = 100

/** Keeps the file for the next step. The form is sent as a stream, so a file that is refused was partly kept, for an hour. */
async function receive({ file, store, who, now, left }: MemberVisit): Promise<Outcome> {
  if (file === undefined || file.name === '') throw new FileRefused('Choose a file')
  const id = newToken()
  const name = file.name.slice(-NAME_KEPT).toWellFormed().replaceAll('\0', '')
  await store.uploads.begin({ id, name }, who.account.id, now)
  await keepFile(store.uploads, id, file.parts, left)
  return { redirect: `${PATH}/${id}` }
}

async function find({ store, call, who, now }: MemberVisit): Promise<Upload> {
  const upload = await store.uploads.find(call.parameters['file']!, who.account.id, now - UPLOAD_KEPT_MS)
  if (upload === undefined) throw GONE
  return upload
}

async function lookAt(visit: MemberVisit): Promise<Checked> {
  const upload = await find(visit)
  return readOnce(upload.id, visit, (left) => checkFile(visit.store.uploads, upload, visit.categories, left))
}

async function filePage(visit: MemberVisit, checked: Checked, problem?: string): Promise<HtmlPage> {
  const { upload, ready, withNew, bad, first, problems, newCategories, ignored } = checked
  const earlier = await visit.store.imports.find(upload.hash)
  const isNew = earlier === undefined
  const similar =
    isNew && (await visit.store.imports.findSimilar({ hash: upload.hash, file: upload.name }, visit.now - DAY_MS))
  const left = earlier && earlier.rowsTotal - earlier.rowsDone
  const mayAdd = isNew ? ready + withNew > 0 : left! > 0 && earlier.rowsTotal === ready
  const categories = html`<fieldset class="question"><legend>New categories</legend>
    <p class="hint">${isolated(newCategories.join(', '))}. Rows left out without them: ${count(withNew)}. They then need a file of their own.</p>
    <label><input type="checkbox" name="create" value="${ready + withNew}" ${visit.form.has('create') && html`checked`}> <span>${CREATE}</span></label></fieldset>`
  const fields = html`${hidden('ready', String(ready))}${isNew && withNew > 0 && categories}`
  const petRows = first.map(({ pet, category }) =>
    SHOWN_FIELDS.map((name) =>
      name === 'categoryId' && category !== undefined ? `${category} (new)` : inWords(pet, name, visit.categories),
    ),
  )
  const problemRows = problems.map(({ line, problem: why }) => [String(line), why])
  return {
    title: 'Check the file',
    section: 'animals',
    ...(problem !== undefined && { status: 400 }),
    body: html`<h1>${isolated(upload.name)}</h1>
      ${problem !== undefined && html`<p class="notice bad" role="alert">${problem}</p>`}
      ${earlier && progressNotice(earlier, checked)}
      ${similar && html`<p class="notice warn" role="status">${similar.file === upload.name ? 'A file of this name' : isolated(basename(similar.file))} was brought in before, ${minute(similar.updatedAt)}: ${counted(similar.rowsDone, 'row')}. Rows that this one has too would be added again.</p>`}
      <p>${counted(ready + withNew + bad, 'row')}: ${count(ready)} good, ${withNew > 0 && `${count(withNew)} with new categories, `}${count(bad)} bad.
        ${ignored.length > 0 && html`Columns that animals do not have are left out, such as ${isolated(ignored.join(', '))}.`}</p>
      ${mayAdd && form(visit, { action: `${PATH}/${upload.id}`, submit: left ? `Add the other ${count(left)}` : 'Add the animals', fields, cancel: '/animals' })}
      ${isNew && first.length > 0 && html`<section><h2>The first ${first.length}</h2>${table(SHOWN_FIELDS.map(labelOf), petRows)}</section>`}
      ${
        bad > 0 &&
        html`<section><h2>Left out: ${counted(bad, 'bad row')}</h2><p>Correct them in a file of their own.${bad > problems.length && ` These are the first ${problems.length}.`}</p>
        ${table(['Line', 'Problem'], problemRows)}</section>`
      }`,
  }
}

const CREATE = 'Create them'

function progressNotice(
  { rowsDone, rowsTotal, updatedAt }: FileImport,
  { ready, withNew, newCategories }: Checked,
): Html {
  const done = html`${count(rowsDone)} of ${counted(rowsTotal, 'row')} were added, the last ones ${minute(updatedAt)}`
  const others = html`${withNew > 0 && html`Left out, because no category has their name: ${isolated(newCategories.join(', '))}.`} Bring in the others as a file of their own.`
  if (rowsDone >= rowsTotal)
    return html`<p class="notice good" role="status">${done}. They are not added again. ${ready + withNew > rowsTotal && others}
      <a href="/animals">Show the animals</a></p>
      <p>To correct some, or as a manager to remove them, tick them in <a href="${listAddress({})}">All</a>, where they stand together.</p>`
  const how =
    rowsTotal === ready
      ? 'The import is running or was interrupted.'
      : html`The import can’t go on, because ${counted(ready, 'row')} can be added now. ${others}`
  return html`<p class="notice warn" role="status">${done}. ${how}</p>`
}

function table(heads: readonly string[], rows: readonly (readonly string[])[]): Html {
  return html`<table class="table file-rows"><thead><tr>${heads.map((head) => html`<th scope="col">${head}</th>`)}</tr></thead>
    <tbody>${rows.map((cells) => html`<tr>${cells.map((cell, nth) => (nth === 0 ? html`<th scope="row">${isolated(cell)}</th>` : html`<td>${isolated(cell)}</td>`))}</tr>`)}</tbody></table>`
}

/** Adds what the page has shown. The page then shows how far it has come. A form that is sent twice meanwhile is handled once. */
async function add(visit: MemberVisit): Promise<Outcome> {
  const upload = await find(visit)
  const key = [upload.id, visit.form.get('ready'), visit.form.get('create')].join(' ')
  const { refused, checked } = await readOnce(key, visit, (left) => addRows(visit, upload, left))
  return refused === undefined
    ? { redirect: `${PATH}/${upload.id}` }
    : filePage(visit, checked, `Nothing was added${refused}`)
}

interface Added {
  checked: Checked
  /** Why nothing was added. */
  refused?: string
}

/** Creates the categories that were ticked, then adds the rows. Stops after a batch when `left` aborts: the page offers to go on. */
async function addRows(visit: MemberVisit, upload: Upload, left: AbortSignal): Promise<Added> {
  const { form: sent, store, who, clock } = visit
  const { uploads, imports } = store
  let checked = await checkFile(uploads, upload, visit.categories, left)
  const { ready, withNew } = checked
  const { name, hash } = upload
  const toAdd = sent.has('create') ? ready + withNew : ready
  const refuse = (refused: string): Added => ({ checked, refused })
  if (String(toAdd) !== (sent.get('create') ?? sent.get('ready')))
    return refuse(`: now ${counted(toAdd, 'row')} can be. Look at the file again.`)
  if (toAdd === 0) return refuse(`: every good row has a new category. Tick “${CREATE}” first.`)
  // An import that was begun without these categories could not go on with them.
  if (sent.has('create') && (await imports.find(hash)) === undefined) {
    const problem = await createCategories(visit, checked, left)
    if (problem !== undefined) return refuse(problem)
    checked = await checkFile(uploads, upload, visit.categories, left)
  }
  const rowsTotal = checked.ready
  // Does nothing if this was begun before: by a form that was sent twice, another tab, or the command.
  await imports.begin({ hash, file: name, rowsTotal }, clock(), false)
  let rowsDone = (await imports.find(hash))?.rowsDone ?? 0
  for await (const batch of batchesAfter(rowsDone, BATCH, checked.rows(visit.categories))) {
    left.throwIfAborted()
    // Resolves with false if somebody else goes on with it.
    if (!(await imports.addRows({ hash, rowsDone, rowsTotal }, batch, clock(), who.account.id))) break
    rowsDone += batch.length
  }
  return { checked }
}

/** Resolves with the problem, if there is one. */
async function createCategories(
  visit: MemberVisit,
  { newCategories, numbers }: Checked,
  left: AbortSignal,
): Promise<string | undefined> {
  const { store, clock } = visit
  for (const name of newCategories) {
    left.throwIfAborted()
    const added = await addCategory(store, name, '', { ...authorOf(visit), at: clock() }, numbers)
    visit.categories = await store.categories.names()
    // A colleague may have added it meanwhile.
    if (added instanceof FieldProblem && visit.categories.numberOf(name) === undefined)
      return `. ${name}: ${added.message}.`
  }
  return undefined
}

/** How many animals one transaction adds: few, because on SQLite it blocks the process. */
const BATCH = 50

// Brings in a file of animals: choose it or paste its rows, match its columns, check its rows, add them. Each step is a page; what was
// decided is saved with the file, and frozen when the first row is added: whichever tab, person or instance goes on adds the same rows.
import { Readable } from 'node:stream'
import { newToken } from '../../accounts/sessions.ts'
import { FieldProblem } from '../../contract/errors.ts'
import { UPLOAD_LIMIT, UPLOAD_ROWS } from '../../contract/limits.ts'
import { html, isolated } from '../../http/html/html.ts'
import { FileRefused } from '../../pet-files/pet-file.ts'
import { batchesAfter } from '../../pet-files/pet-rows.ts'
import { addCategory } from '../../store/category-store.ts'
import type { FileImport } from '../../store/imports.ts'
import { type Upload, UPLOAD_KEPT_MS } from '../../store/uploads.ts'
import { PASTED } from '../every-page/file-form.ts'
import { formPage } from '../every-page/form-page.ts'
import { field, form, hidden, type Problems } from '../every-page/forms.ts'
import { readOnce } from '../every-page/readings.ts'
import { count, counted, minute } from '../every-page/times.ts'
import { type ConsoleRoute, forMembers, type HtmlPage, type MemberVisit, type Outcome } from '../every-page/visit.ts'
import { listAddress } from '../animals/animal-addresses.ts'
import { addressOf as addressOfBatch, mayUndo } from '../animals/animal-batches.ts'
import { authorOf } from '../animals/animal-history.ts'
import { type Checked, checkFile, frozen, leftOutFile, petsOf } from './import-check.ts'
import { checkPage, firstBad, shownOf, withForm } from './import-check-page.ts'
import { addressOf, columnsPage, PATH, saveColumns, WAITING } from './import-columns.ts'
import { GONE, keepFile, readStart, type Start, startOf } from './import-file.ts'
import { type FrozenPlan, readPlan, written } from './import-plan.ts'

export const importRoutes: readonly ConsoleRoute[] = [
  forMembers('GET', PATH, (visit) => choosePage(visit)),
  forMembers('POST', PATH, orChooseAgain(receive), { takesFile: true }),
  forMembers('GET', `${PATH}/{file}`, orChooseAgain(unlessBegun(nextStep))),
  forMembers('POST', `${PATH}/{file}`, orChooseAgain(unlessBegun(decide)), { keepsTyped: true }),
  forMembers('GET', `${PATH}/{file}/columns`, orChooseAgain(unlessBegun(columnsPage))),
  forMembers('POST', `${PATH}/{file}/columns`, orChooseAgain(unlessBegun(saveColumns)), { keepsTyped: true }),
  forMembers('GET', `${PATH}/{file}/left-out.csv`, orChooseAgain(download)),
]

function choosePage(visit: MemberVisit, problem?: string): HtmlPage {
  const problems = problem === undefined ? [] : [new FieldProblem('file', problem)]
  const hint = `CSV, as a spreadsheet saves it, of at most ${UPLOAD_LIMIT / 1024 / 1024} MB and ${count(UPLOAD_ROWS)} animals.`
  const rows = html`<div class="field"><label for="rows">Rows</label><p class="hint" id="rows-hint">Copied from a spreadsheet, with the names of the columns if there are any.</p>
    <textarea id="rows" name="${PASTED.field}" rows="6" aria-describedby="rows-hint" autocomplete="off"></textarea></div>`
  return formPage(visit, {
    title: 'Import a spreadsheet',
    section: 'animals',
    problems,
    above: html`<p>It needs a column with names and one with categories; one with statuses if you like. You see what would be added before
      anything is.</p>`,
    action: PATH,
    submit: html`<button class="button primary">Check the file</button>${WAITING}`,
    cancel: '/animals',
    hasFile: true,
    fields: field({ name: 'file', label: 'File', type: 'file', hint, problems, focus: true }),
    below: html`<h2>Or paste its rows</h2>${form(visit, { action: PATH, submit: html`<button class="button">Check the rows</button>${WAITING}`, hasFile: true, fields: rows })}`,
  })
}

type Handle = (visit: MemberVisit) => Promise<Outcome>

/** Wraps a page that reads a file, which may be refused. */
function orChooseAgain(handle: Handle): Handle {
  return async (visit) => {
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
  return { redirect: addressOf({ id }) }
}

async function find({ store, call, who, now }: MemberVisit): Promise<Upload> {
  const upload = await store.uploads.find(call.parameters['file']!, who.account.id, now - UPLOAD_KEPT_MS)
  if (upload === undefined) throw GONE
  return upload
}

/** Wraps a step. One import is begun for one content: whichever page of it is opened then shows that. */
function unlessBegun(handle: (visit: MemberVisit, upload: Upload) => Promise<Outcome>): Handle {
  return async (visit) => {
    const upload = await find(visit)
    const begun = await visit.store.imports.find(upload.hash)
    if (begun === undefined) return handle(visit, upload)
    if (visit.form.get('act') !== 'add') return begunPage(visit, upload, begun)
    await readOnce(`${upload.hash} add`, visit, (left) => addRows(visit, upload, left))
    return { redirect: addressOf(upload) }
  }
}

async function nextStep(visit: MemberVisit, upload: Upload): Promise<Outcome> {
  const key = `${upload.id} ${firstBad(visit)} ${upload.plan}`
  // One reading, which the same page in another tab joins.
  const { start, checked } = await readOnce(key, visit, async (left) => {
    const found = await startOf(visit, upload)
    return { start: found, checked: found.isSure ? await check(visit, upload, found, left) : undefined }
  })
  return checked ? pageOf(visit, upload, start, checked) : { redirect: `${addressOf(upload)}/columns` }
}

const check = (visit: MemberVisit, upload: Upload, start: Start, left: AbortSignal) =>
  checkFile(visit, upload, start, firstBad(visit), left)

async function refused(visit: MemberVisit, upload: Upload, start: Start, problem: string): Promise<HtmlPage> {
  const checked = await readOnce(`${upload.id} ${problem}`, visit, (left) => check(visit, upload, start, left))
  return pageOf(visit, upload, start, checked, [new FieldProblem('', problem)])
}

function pageOf(visit: MemberVisit, upload: Upload, start: Start, checked: Checked, problems: Problems = []) {
  return checked.hasWrongColumn
    ? columnsPage(visit, upload, 'More than 100 values are no category or status. Is it the right column?')
    : checkPage(visit, upload, start, checked, problems)
}

/** How long a plan may be: what a person corrects here is bounded. */
const PLAN_MOST = 512 * 1024

/** Saves what was decided and corrected. What the page had not shown is shown before it is added. */
async function decide(visit: MemberVisit, upload: Upload): Promise<Outcome> {
  const { form: sent, store } = visit
  const start = await readStart(visit, upload)
  const plan = withForm(start.plan, sent, visit.categories)
  if (plan instanceof FieldProblem) return refused(visit, upload, start, plan.message)
  const [json, isSame] = [written(plan), written(plan) === written(start.plan)]
  if (json.length > PLAN_MOST)
    return refused(visit, upload, start, 'So much can’t be corrected here: download the rows that are left out')
  // The same form may have been sent twice.
  if (!isSame && !(await store.uploads.savePlan(upload, json)) && (await find(visit)).plan !== json)
    return refused(visit, upload, start, 'This file was changed in another window meanwhile. Look at it again')
  const saved = { redirect: `${addressOf(upload)}?saved=yes` }
  if (sent.get('act') !== 'add') return saved
  const problem = await readOnce(`${upload.hash} ${json}`, visit, (left) =>
    begin(visit, upload, { ...start, plan }, left),
  )
  if (problem === undefined) return { redirect: addressOf(upload) }
  return problem.startsWith(CHANGED) && !isSame ? saved : refused(visit, upload, { ...start, plan }, problem)
}

const CHANGED = 'Nothing was added: now'

/** Freezes the plan and adds the rows. Resolves with the problem if there is one: then nothing was added. */
async function begin(visit: MemberVisit, upload: Upload, start: Start, left: AbortSignal): Promise<string | undefined> {
  const { form: sent, store, clock } = visit
  const { plan } = start
  const checked = await check(visit, upload, start, left)
  const total = checked.total(plan)
  if (sent.get('shown') !== shownOf(plan, checked))
    return `${CHANGED} ${counted(total, 'animal')} would be. Look at the file again`
  if (checked.similar > 0 && plan.similar === undefined) return 'Choose what to do with the rows that are here already'
  if (total === 0) return 'No row is left to be added'
  const numbers: Record<string, string> = {}
  for (const [key, name] of checked.created) {
    left.throwIfAborted()
    const added = await addCategory(store, name, '', { ...authorOf(visit), at: clock() }, checked.used)
    if (added instanceof FieldProblem) return `Nothing was added. ${name}: ${added.message}`
    numbers[key] = String(added.number)
  }
  const [file, json] = [{ hash: upload.hash, file: upload.name }, written(frozen(plan, checked, numbers))]
  // False if an import of this content was begun meanwhile, by another tab or the command: the page shows that.
  const isBegun = await store.imports.beginPlanned(file, json, total, { ...authorOf(visit), at: clock() })
  if (isBegun) await addRows(visit, upload, left)
  return undefined
}

/** How many animals one transaction adds: few, because on SQLite it blocks the process. */
const BATCH = 50

/** Adds the rows that were not added yet. Stops after a batch when `left` aborts: the page offers to go on. */
async function addRows(visit: MemberVisit, upload: Upload, left: AbortSignal): Promise<void> {
  const { store, who, clock } = visit
  const begun = await store.imports.find(upload.hash)
  const plan = frozenOf(begun)
  if (begun === undefined || plan === undefined || begun.rowsDone >= plan.total) return
  let { rowsDone } = begun
  for await (const batch of batchesAfter(rowsDone, BATCH, petsOf(visit, upload, plan, left))) {
    left.throwIfAborted()
    const progress = { ...begun, rowsDone, rowsTotal: rowsDone }
    // Resolves with false if somebody else goes on with it, or takes it back.
    if (!(await store.imports.addRows(progress, batch, clock(), who.account.id, BigInt(begun.batchId!)))) break
    rowsDone += batch.length
  }
}

function frozenOf(begun: FileImport | undefined): FrozenPlan | undefined {
  const plan = readPlan(begun?.plan)
  return plan.total === undefined ? undefined : (plan as FrozenPlan)
}

async function begunPage(visit: MemberVisit, upload: Upload, begun: FileImport): Promise<HtmlPage> {
  const { rowsDone, updatedAt, rowsTotal, batchId } = begun
  const plan = frozenOf(begun)
  const batch = batchId === undefined ? undefined : await visit.store.batches.find(BigInt(batchId))
  const { total = rowsTotal, leftOut = 0 } = plan ?? {}
  const left = batch?.undoneBy === undefined ? total - rowsDone : 0
  const show = html`They are not added again. <a href="${listAddress({})}">Show the animals</a>`
  const others = begun.plan === undefined ? 'the command petstore import or an earlier release' : 'a later release'
  const isOthers = plan === undefined && (left > 0 || begun.plan !== undefined)
  const how = left > 0 ? 'The import is running or was interrupted.' : show
  return {
    title: 'Import a spreadsheet',
    section: 'animals',
    body: html`<p class="back"><a href="${PATH}">Choose another file</a></p><h1>${isolated(upload.name)}</h1>
      <p class="notice ${left > 0 ? 'warn' : 'good'}" role="status">${count(rowsDone)} of ${counted(total, 'animal')} added, the last ones ${minute(updatedAt)}.
        ${isOthers ? `It was begun by ${others}, which can go on with it.` : how}</p>
      ${plan && left > 0 && form(visit, { action: addressOf(upload), submit: `Add the other ${count(left)}`, fields: hidden('act', 'add'), cancel: '/animals' })}
      ${leftOut > 0 && html`<p>${counted(leftOut, 'row')} left out: <a href="${addressOf(upload)}/left-out.csv">download ${leftOut === 1 ? 'it' : 'them'}</a>, to correct and bring in as a file.</p>`}
      ${batch && html`<p><a href="${addressOfBatch(batch)}">${mayUndo(visit, batch) ? 'Undo this import …' : 'What became of this import'}</a></p>`}`,
  }
}

async function download(visit: MemberVisit): Promise<Outcome> {
  const upload = await find(visit)
  const start = await readStart(visit, upload)
  const plan = frozenOf(await visit.store.imports.find(upload.hash))
  const from = { ...start, plan: plan ?? start.plan, begun: plan !== undefined }
  const read = (left: AbortSignal) => leftOutFile(visit, upload, from, left)
  const texts = await readOnce(`${upload.id} left out`, visit, read)
  return { file: 'left-out.csv', type: 'text/csv; charset=utf-8', content: Readable.from(texts) }
}

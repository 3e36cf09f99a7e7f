// The step that says which column of a file is what: the row with their names, and for each column its first cells.
import { FieldProblem } from '../../contract/errors.ts'
import { CATEGORY } from '../../contract/pet-csv.ts'
import { labelOf } from '../../contract/pet-words.ts'
import { html, type Html, isolated } from '../../http/html/html.ts'
import { type Target, TARGETS } from '../../pet-files/guess-columns.ts'
import type { Upload } from '../../store/uploads.ts'
import { form, optionList, problemSummary } from '../every-page/forms.ts'
import type { HtmlPage, MemberVisit, Outcome } from '../every-page/visit.ts'
import { readStart, type Start } from './import-file.ts'
import { fieldOf, written } from './import-plan.ts'

export const PATH = '/animals/import'
export const addressOf = ({ id }: Pick<Upload, 'id'>) => `${PATH}/${id}`
const columnsAddress = (upload: Upload) => `${addressOf(upload)}/columns`

const wordsOf = (target: Target) => (target === 'categoryId' ? 'Category number' : labelOf(fieldOf(target)))
const OPTIONS = [['', 'Leave out'] as const, ...TARGETS.map((target) => [target, wordsOf(target)] as const)]

/** Shown while a form is sent (console.css). */
export const WAITING = html`<span class="waiting" role="status">Reading the rows …</span>`

/** Returns the names of the columns, as the file has them or by their place. */
export function namesOf({ plan, rows }: Pick<Start, 'plan' | 'rows'>): string[] {
  const named = rows.find(({ line }) => line === plan.header)?.cells ?? []
  return plan.columns.map((_, index) => named[index]?.trim() || `Column ${index + 1}`)
}

export async function columnsPage(visit: MemberVisit, upload: Upload, problem?: string): Promise<HtmlPage> {
  const problems = problem === undefined ? [] : [new FieldProblem('', problem)]
  const start = await readStart(visit, upload)
  const { plan, rows } = start
  const samples = rows.filter(({ line }) => line > plan.header).slice(0, 3)
  const columns = namesOf(start).map((name, index) => {
    const [id, chosen] = [`column_${index}`, visit.form.get(`column_${index}`) ?? plan.columns[index]!]
    return html`<tr><th scope="row">${isolated(name)}</th><td>${samples.map(({ cells }) => html`<div>${isolated(cells[index] ?? '')}</div>`)}</td>
      <td><select id="${id}" name="${id}" aria-label="${name} is">${optionList(OPTIONS, chosen)}</select></td></tr>`
  })
  const row = (line: number, words: Html | string) =>
    html`<label><input type="radio" name="header" value="${line}" ${line === plan.header && html`checked`}> <span>${words}</span></label>`
  const heads = rows.map(({ line, cells }) => row(line, html`${line}: ${isolated(cells.join(' | ').slice(0, 120))}`))
  const fields = html`<table class="table file-rows match"><thead><tr><th scope="col">Your column</th><th scope="col">For example</th><th scope="col">Here it is</th></tr></thead><tbody>${columns}</tbody></table>
    <details ${plan.header === 0 && html`open`}><summary>Another row names the columns</summary><fieldset class="question"><legend>The row with the names</legend>
    ${heads}${row(0, 'None: the first row is an animal')}</fieldset></details>`
  return {
    title: 'Match the columns',
    section: 'animals',
    ...(problems.length > 0 && { status: 400 }),
    body: html`<p class="back"><a href="${PATH}">Choose another file</a></p><h1>Which column is what?</h1>
      <p>${isolated(upload.name)}${plan.encoding === 'windows-1252' && ' (Windows-1252)'}: name and category are needed. Nothing is added yet.</p>
      ${problemSummary(problems)}${form(visit, { action: columnsAddress(upload), submit: html`<button class="button primary">Check the rows</button>${WAITING}`, fields, cancel: PATH, cancelWords: 'Back' })}`,
  }
}

/** Saves the columns. Another row of names is another guess, which is shown first. */
export async function saveColumns(visit: MemberVisit, upload: Upload): Promise<Outcome> {
  const { form: sent, store } = visit
  const { plan, rows } = await readStart(visit, upload)
  const header = rows.find(({ line }) => String(line) === sent.get('header'))?.line ?? 0
  const columns = plan.columns.map((_, index) => TARGETS.find((target) => target === sent.get(`column_${index}`)) ?? '')
  const isSame = header === plan.header
  const problem = isSame ? problemOf(columns) : undefined
  if (problem !== undefined) return columnsPage(visit, upload, problem)
  const { columns: _former, ...others } = plan
  await store.uploads.savePlan(upload, written({ ...others, header, ...(isSame && { columns }) }))
  return { redirect: isSame ? addressOf(upload) : columnsAddress(upload) }
}

function problemOf(columns: readonly (Target | '')[]): string | undefined {
  const twice = TARGETS.find((target) => columns.indexOf(target) !== columns.lastIndexOf(target))
  if (twice !== undefined) return `Two columns are ${wordsOf(twice)}: choose one of them`
  if (!columns.includes('name')) return 'Choose the column with the names of the animals'
  const isNamed = columns.includes(CATEGORY) || columns.includes('categoryId')
  return isNamed ? undefined : 'Choose the column with the categories, such as Dogs'
}

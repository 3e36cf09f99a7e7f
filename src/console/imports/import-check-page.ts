// The step that shows what a file would add: what to decide of its values, and its bad rows, to be corrected in place.
import { hash } from 'node:crypto'
import type { CategoryNames } from '../../contract/category-name.ts'
import { FieldProblem } from '../../contract/errors.ts'
import { labelOf, STATUS_WORDS } from '../../contract/pet-words.ts'
import { FIELD_NAMES, PET_STATUSES } from '../../contract/pets.ts'
import { html, type Html, isolated } from '../../http/html/html.ts'
import type { Upload } from '../../store/uploads.ts'
import { form, hidden, optionList, type Problems, problemSummary } from '../every-page/forms.ts'
import { count, counted } from '../every-page/times.ts'
import type { HtmlPage, MemberVisit } from '../every-page/visit.ts'
import { BAD_SHOWN, type Checked, type Unknown } from './import-check.ts'
import { addressOf, namesOf, PATH, WAITING } from './import-columns.ts'
import type { Start } from './import-file.ts'
import { CREATE, type FileRow, isChoice, LEAVE, type Plan, type Texts } from './import-plan.ts'

/** Returns what the page shows in a short form: nothing else is added. */
export function shownOf({ header, columns, cells }: Plan, { ready, leftOut, similar, unknown }: Checked): string {
  const values = [...unknown.values()].map(({ key, choice }) => [key, choice])
  return hash('sha256', JSON.stringify([header, columns, cells, ready, leftOut, similar, values])).slice(0, 16)
}

/** How many bad rows come before those of the page. */
export function firstBad({ query }: MemberVisit): number {
  return Math.max(0, Math.trunc(Number(query.get('from')) || 0))
}

const newCategories = (number: number) => `${count(number)} new ${number === 1 ? 'category' : 'categories'}`

export function checkPage(
  visit: MemberVisit,
  upload: Upload,
  start: Start,
  checked: Checked,
  problems: Problems,
): HtmlPage {
  const { plan } = start
  const { ready, similar, created, unknown, badRows: bad, leftOut } = checked
  const [address, from, isAsked] = [addressOf(upload), firstBad(visit), similar > 0 && plan.similar === undefined]
  const total = isAsked ? ready - similar : checked.total(plan)
  const here = total < ready && `, ${count(similar)} here already`
  const out = namesOf(start).filter((_, index) => plan.columns[index] === '')
  // The Enter key presses the first button.
  const fields = html`<button hidden name="act" value="check"></button>${hidden('shown', shownOf(plan, checked))}
    ${unknown.size > 0 && html`<fieldset class="question"><legend>The store does not know these</legend><table class="table correct"><tbody>${[...unknown.values()].map((value) => unknownValue(visit, value))}</tbody></table></fieldset>`}
    ${similar > 0 && similarQuestion(plan, ready, similar)}${checked.bad > 0 && badRows(visit, upload, checked)}
    <datalist id="categories">${[...visit.categories.names.values()].map((name) => html`<option value="${name}"></option>`)}</datalist>`
  const submit = html`${unknown.size + bad.length > 0 && html`<button class="button" name="act" value="check">Save and check again</button>`}
    ${ready > 0 && html`<button class="button primary" name="act" value="add">Add ${isAsked ? 'animals' : counted(total, 'animal')}</button>`}
    ${leftOut > 0 && html`<a href="${address}/left-out.csv">Download the ${counted(leftOut, 'row')} left out</a>`}${WAITING}`
  return {
    title: 'Check the rows',
    section: 'animals',
    ...(problems.length > 0 && { status: 400 }),
    body: html`<p class="back"><a href="${address}/columns">Back to the columns</a> · <a href="${PATH}">Choose another file</a></p><h1>${isolated(upload.name)}</h1>
      ${problemSummary(problems)}${visit.query.has('saved') && html`<p class="notice good" role="status">Saved, and checked again. Nothing was added yet.</p>`}
      <p class="lead">${counted(total, 'animal')}${created.size > 0 && `, ${newCategories(created.size)}`}${here}; ${counted(leftOut, 'row')} left out.</p>
      <p class="quiet-text">${plan.encoding === 'windows-1252' && 'Read as Windows-1252. '}${out.length > 0 && html`Columns left out: ${isolated(out.join(', '))}.`}
        ${out.some((name) => /^id$/i.test(name)) && 'Each animal gets an id of its own, so no animal that is here is changed.'}</p>
      ${form(visit, { action: from > 0 ? `${address}?from=${from}` : address, fields, submit })}`,
  }
}

function unknownValue({ categories: named, form: typed }: MemberVisit, unknown: Unknown): Html {
  const { field, key, text, choice = '', value, lines, rows, similar } = unknown
  const own = [CREATE, value === undefined || choice !== CREATE ? 'Create it' : 'Keep the number'] as const
  const isOther = field === 'categoryId' && choice !== CREATE && choice !== LEAVE
  const other = isOther ? [[choice, `Use ${named.words(BigInt(choice))}`] as const] : []
  const options =
    field === 'status' ? PET_STATUSES.map((status) => [status, STATUS_WORDS[status]] as const) : [own, ...other]
  return html`<tr><th scope="row">${isolated(text)} <span class="quiet-text">${counted(rows, 'row')}: line ${lines.join(', ')}${rows > lines.length && ' …'}</span></th>
    <td><select name="choice_${key}" aria-label="${labelOf(field)} ${text}">${optionList([...options, [LEAVE, 'Leave out']], typed.get(`choice_${key}`) ?? choice)}</select></td>
    <td>${field === 'categoryId' && html`<input type="text" name="use_${key}" value="${typed.get(`use_${key}`) ?? ''}" list="categories" placeholder="Use instead …" aria-label="Use instead of ${text}" autocomplete="off">`}
      ${similar !== undefined && !isOther && html`<button class="button quiet" name="use_${key}" value="${similar}"><span>Did you mean ${isolated(similar)}?</span></button>`}</td></tr>`
}

function similarQuestion({ similar: chosen }: Plan, ready: number, similar: number): Html {
  const others = ready - similar
  const option = (value: string, words: string) =>
    html`<label><input type="radio" name="similar" value="${value}" ${value === chosen && html`checked`}> <span>${words}</span></label>`
  return html`<fieldset class="question"><legend>${others === 0 ? 'Every row of this file is here already' : `${count(similar)} of these rows look like animals that are here`}</legend>
    ${option('all', others === 0 ? 'Add all once more' : 'Add all')}${others > 0 && option('others', `Add only the other ${count(others)}`)}</fieldset>`
}

/** The longest cell that a form takes, and the bytes of all cells of a page: with 100 unknown values, a form has room for what is corrected. */
const MOST = { cell: 300, page: 6000 }

function badRows(visit: MemberVisit, upload: Upload, { badRows: rows, bad }: Checked): Html {
  const from = firstBad(visit)
  let room = MOST.page
  const shown: Html[] = []
  for (const row of rows) {
    const texts = Object.values(row.texts)
    const isEditable = texts.every((text) => text.length <= MOST.cell && !/[\r\n\0]/.test(text))
    if (isEditable) room -= String(new URLSearchParams([['', texts.join('')]])).length
    if (room < 0 && shown.length > 0) break
    shown.push(badRow(visit, row, isEditable))
  }
  const page = (at: number, words: string) => html`<a href="${addressOf(upload)}?from=${at}">${words}</a>`
  return html`<fieldset class="question"><legend>${counted(bad, 'row')} to correct, or to leave out</legend>
    <table class="table correct"><thead><tr><th scope="col">In the file</th>${FIELD_NAMES.map((name) => html`<th scope="col">${labelOf(name)}</th>`)}</tr></thead><tbody>${shown}</tbody></table>
    ${from > 0 && page(Math.max(0, from - BAD_SHOWN), '← Previous')} ${bad > from + shown.length && page(from + shown.length, 'Next →')}</fieldset>`
}

function badRow({ form: typed }: MemberVisit, { line, texts, problems }: FileRow, isEditable: boolean): Html {
  const problemAt = (field: string) => problems.find((problem) => problem.field === field)?.message
  const cells = FIELD_NAMES.map((name) => {
    const [id, problem] = [`cell_${line}_${name}`, problemAt(name) ?? (name === 'name' && problemAt(''))]
    const input = html`<input type="text" id="${id}" name="${id}" value="${typed.get(id) ?? texts[name]!}" aria-label="${labelOf(name)}, line ${line}" dir="auto"
      autocomplete="off" ${name === 'categoryId' && html`list="categories"`} ${problem && html`aria-invalid="true" aria-describedby="${id}-problem"`}>`
    return html`<td data-label="${labelOf(name)}">${isEditable ? input : isolated(texts[name]!.slice(0, MOST.cell))}${problem && html`<p class="problem" id="${id}-problem">${problem}</p>`}</td>`
  })
  return html`<tr><th scope="row">Line ${line}${isEditable && hidden(`row_${line}`, digest(texts))}</th>${cells}</tr>`
}

const digest = (texts: Texts) => hash('sha256', JSON.stringify(FIELD_NAMES.map((name) => texts[name]))).slice(0, 12)

/** Returns the plan with what a form has decided and corrected. */
export function withForm(plan: Plan, sent: URLSearchParams, named: CategoryNames): Plan | FieldProblem {
  const chosen: Record<string, string> = {}
  const used: Record<string, string> = {}
  const cells: Record<string, Texts> = { ...plan.cells }
  for (const [name, value] of sent) {
    const [, what, key = ''] = /^(choice|use|row)_(\w{1,16})$/.exec(name) ?? []
    if (what === 'choice' && (isChoice('status', value) || isChoice('categoryId', value))) chosen[key] = value
    if (what === 'use' && value.trim() !== '') {
      const number = named.numberOf(value)
      if (number === undefined || !named.names.has(number)) return new FieldProblem('', named.unknown(value))
      used[key] = String(number)
    }
    const texts = Object.fromEntries(FIELD_NAMES.map((field) => [field, sent.get(`cell_${key}_${field}`) ?? '']))
    if (what === 'row' && /^\d+$/.test(key) && digest(texts) !== value) cells[key] = texts
  }
  const similar = sent.get('similar')
  const choices = { ...plan.choices, ...chosen, ...used }
  return { ...plan, choices, cells, ...((similar === 'all' || similar === 'others') && { similar }) }
}

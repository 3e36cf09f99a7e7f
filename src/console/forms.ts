// Forms: each field has a label, a hint and, after a rejected attempt, its problem; what was typed is kept.
import type { FieldProblem } from '../contract/errors.ts'
import { html, type Html } from './html.ts'
import { csrfTokenFor, type Visit } from './visit.ts'

export type Problems = readonly FieldProblem[]

interface FormParts {
  action: string
  /** The words on the button. */
  submit: string
  fields: Html | readonly Html[]
  /** For a button that deletes or revokes something. */
  danger?: boolean
  /** Where the Cancel link beside the button leads. */
  cancel?: string
}

export function form(visit: Visit, { action, submit, fields, danger, cancel }: FormParts): Html {
  return html`<form class="form" method="post" action="${action}" novalidate>
    <input type="hidden" name="csrf" value="${csrfTokenFor(visit)}">
    ${visit.isRestored && html`<p class="notice warn" role="status">Nothing was saved yet: your session had ended. This is what you typed.</p>`}
    ${fields}
    <div class="form-end">
      <button class="button ${danger ? 'danger' : 'primary'}">${submit}</button>
      ${cancel !== undefined && html`<a href="${cancel}">Cancel</a>`}
    </div>
  </form>`
}

interface FieldParts {
  name: string
  label: string
  problems: Problems
  hint?: string
  value?: string
  type?: 'text' | 'email' | 'password'
  autocomplete?: string
  /** Values to choose from, beside what can be typed. */
  suggestions?: readonly string[]
  /** For whole numbers: digits on a phone's keyboard. */
  numeric?: boolean
}

export function field({
  name,
  label,
  problems,
  hint,
  value = '',
  type = 'text',
  autocomplete = 'off',
  numeric,
  suggestions = [],
}: FieldParts): Html {
  const list = suggestions.length > 0 && `${name}-suggestions`
  const problem = problemOf(name, problems)
  return html`<div class="field${problem && ' wrong'}">
    <label for="${name}">${label}</label>
    ${hintLine(name, hint)}${problemLine(name, problem)}
    <input id="${name}" name="${name}" type="${type}" value="${value}" autocomplete="${autocomplete}" dir="auto"
      ${numeric && html`inputmode="numeric"`} ${list && html`list="${list}"`} ${described(name, hint, problem)}>
    ${list && html`<datalist id="${list}">${suggestions.map((suggestion) => html`<option value="${suggestion}"></option>`)}</datalist>`}
  </div>`
}

interface ChoiceParts {
  name: string
  label: string
  problems: Problems
  hint?: string
  value: string
  options: readonly (readonly [value: string, words: string])[]
}

export function choice({ name, label, problems, hint, value, options }: ChoiceParts): Html {
  const problem = problemOf(name, problems)
  return html`<div class="field${problem && ' wrong'}">
    <label for="${name}">${label}</label>
    ${hintLine(name, hint)}${problemLine(name, problem)}
    <select id="${name}" name="${name}" ${described(name, hint, problem)}>
      ${options.map(([option, words]) => html`<option value="${option}" ${option === value && html`selected`}>${words}</option>`)}
    </select>
  </div>`
}

export function hidden(name: string, value: string): Html {
  return html`<input type="hidden" name="${name}" value="${value}">`
}

/** Lists the problems above the form, each with a link to its field. */
export function problemSummary(problems: Problems): Html | false {
  const lines = problems.map(({ field: name, message }) =>
    name === '' ? html`${message}` : html`<a href="#${name}">${message}</a>`,
  )
  if (lines.length < 2) return lines.length === 1 && html`<p class="notice bad" role="alert">${lines}</p>`
  return html`<div class="notice bad" role="alert">
    <p><strong>${lines.length} fields need another look</strong></p>
    <ul>${lines.map((line) => html`<li>${line}</li>`)}</ul>
  </div>`
}

function problemOf(name: string, problems: Problems): string | undefined {
  return problems.find((problem) => problem.field === name)?.message
}

function hintLine(name: string, hint: string | undefined): Html | undefined {
  return hint === undefined ? undefined : html`<p class="hint" id="${name}-hint">${hint}</p>`
}

function problemLine(name: string, problem: string | undefined): Html | undefined {
  return problem === undefined ? undefined : html`<p class="problem" id="${name}-problem">${problem}</p>`
}

/** Ties hint and problem to the field, for screen readers. */
function described(name: string, hint: string | undefined, problem: string | undefined): Html | undefined {
  const ids = [hint !== undefined && `${name}-hint`, problem !== undefined && `${name}-problem`]
    .filter(Boolean)
    .join(' ')
  if (ids === '') return undefined
  return problem === undefined ? html`aria-describedby="${ids}"` : html`aria-describedby="${ids}" aria-invalid="true"`
}

// Forms: each field has a label, a hint and, after a rejected attempt, its problem and what was typed.
import type { FieldProblem } from '../contract/errors.ts'
import { html, type Html } from '../http/html.ts'
import { csrfTokenFor, type Visit } from './visit.ts'

export type Problems = readonly FieldProblem[]

interface FormParts {
  action: string
  /** The words on the button. */
  submit: string
  fields: Html | readonly Html[]
  /** For a button that deletes or revokes something. */
  danger?: boolean
  /** The address of the Cancel link beside the button. */
  cancel?: string
}

/** `autocomplete` keeps browsers from putting back, after the Back button, choices of an older page that had other values. */
export function form(visit: Visit, { action, submit, fields, danger, cancel }: FormParts): Html {
  return html`<form class="form" method="post" action="${action}" autocomplete="off" novalidate>
    ${hidden('csrf', csrfTokenFor(visit))}
    ${visit.isRestored && html`<p class="notice warn" role="status">Nothing was saved yet: your session had ended. This is what you typed.</p>`}
    ${fields}
    <div class="form-end">
      <button class="button ${danger ? 'danger' : 'primary'}">${submit}</button>
      ${cancel !== undefined && html`<a href="${cancel}">Cancel</a>`}
    </div>
  </form>`
}

export interface FieldParts {
  name: string
  label: string
  problems: Problems
  hint?: string | undefined
  value?: string
}

interface InputParts extends FieldParts {
  type?: 'text' | 'email' | 'password'
  autocomplete?: string
  /** Values to choose from; others can be typed. */
  suggestions?: readonly string[]
  /** Shows digits on a phone's keyboard. */
  numeric?: boolean
}

export function field(parts: InputParts): Html {
  const { name, value = '', type = 'text', autocomplete = 'off', numeric, suggestions = [] } = parts
  const list = suggestions.length > 0 && `${name}-suggestions`
  const input = html`<input id="${name}" name="${name}" type="${type}" value="${value}" autocomplete="${autocomplete}" dir="auto"
      ${numeric && html`inputmode="numeric"`} ${list && html`list="${list}"`} ${description(parts)}>
    ${list && html`<datalist id="${list}">${suggestions.map((suggestion) => html`<option value="${suggestion}"></option>`)}</datalist>`}`
  return labelled(parts, input)
}

type Options = readonly (readonly [value: string, words: string])[]

export function choice({ options, value = '', ...parts }: FieldParts & { options: Options }): Html {
  const attributes = html`id="${parts.name}" name="${parts.name}" ${description(parts)}`
  return labelled(parts, html`<select ${attributes}>${optionList(options, value)}</select>`)
}

export function optionList(options: Options, chosen: string): Html[] {
  return options.map(
    ([value, words]) => html`<option value="${value}" ${value === chosen && html`selected`}>${words}</option>`,
  )
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

function problemOf({ name, problems }: FieldParts): string | undefined {
  return problems.find((problem) => problem.field === name)?.message
}

/** Puts the label, the hint and the problem above a control. */
function labelled(parts: FieldParts, control: Html): Html {
  const { name, label, hint } = parts
  const problem = problemOf(parts)
  return html`<div class="field${problem && ' wrong'}">
    <label for="${name}">${label}</label>
    ${hint && html`<p class="hint" id="${name}-hint">${hint}</p>`}
    ${problem && html`<p class="problem" id="${name}-problem">${problem}</p>`}
    ${control}
  </div>`
}

/** Returns the attributes that tie hint and problem to their control, for screen readers. */
function description(parts: FieldParts): Html {
  const problem = problemOf(parts)
  const ids = [parts.hint && `${parts.name}-hint`, problem && `${parts.name}-problem`].filter(Boolean).join(' ')
  return html`${ids && html`aria-describedby="${ids}"`} ${problem && html`aria-invalid="true"`}`
}

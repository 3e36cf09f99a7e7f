// Forms: each field has a label, a hint and, after a rejected attempt, its problem and what was typed. What was typed is kept, too,
// if the session has ended (`withTyped`).
import { createHmac } from 'node:crypto'
import { csrfToken, isEqualInConstantTime } from '../../accounts/sessions.ts'
import type { FieldProblem } from '../../contract/errors.ts'
import { html, type Html } from '../../http/html/html.ts'
import { tokenFor, type Visit } from './visit.ts'

export type Problems = readonly FieldProblem[]

export interface FormParts {
  action: string
  /** The words on the button, or several buttons. */
  submit: string | Html
  fields?: Html
  /** For a button that deletes or revokes something. */
  danger?: boolean
  /** The address of the Cancel link beside the button. */
  cancel?: string
  cancelWords?: string
  hasFile?: boolean
}

/** `autocomplete` keeps browsers from putting back, after the Back button, choices of an older page that had other values. */
export function form(
  visit: Visit,
  { action, submit, fields, danger, cancel, cancelWords = 'Cancel', hasFile }: FormParts,
): Html {
  return html`<form class="form" method="post" action="${action}" ${hasFile && html`enctype="multipart/form-data"`} autocomplete="off" novalidate>
    ${csrfField(visit)}
    ${visit.isRestored && html`<p class="notice warn" role="status">Nothing was saved yet: your session had ended. This is what you typed.</p>`}
    ${fields}
    <div class="form-end">
      ${typeof submit === 'string' ? html`<button class="button ${danger ? 'danger' : 'primary'}">${submit}</button>` : submit}
      ${cancel !== undefined && html`<a href="${cancel}">${cancelWords}</a>`}
    </div>
  </form>`
}

/** A form that is only its buttons, such as the next step of an animal. */
export function buttonForm(visit: Visit, action: string, content: Html): Html {
  return html`<form class="step" method="post" action="${action}">${csrfField(visit)}${content}</form>`
}

export function csrfField(visit: Visit): Html {
  return hidden('csrf', csrfToken(tokenFor(visit)))
}

export interface FieldParts {
  name: string
  label: string
  problems: Problems
  hint?: string | undefined
  value?: string
  /** Whether the page opens with the focus on this field. The first problem goes before. */
  focus?: boolean
}

interface InputParts extends FieldParts {
  type?: 'text' | 'email' | 'password' | 'file'
  autocomplete?: string
  /** Values to choose from; others can be typed. */
  suggestions?: readonly string[]
  /** Shows digits on a phone's keyboard. */
  numeric?: boolean
  /** Buttons that fill in another value. They send the form, but the Enter key does not press them. */
  offers?: Html | false
}

export function field(parts: InputParts): Html {
  const { name, value = '', type = 'text', autocomplete = 'off', numeric, suggestions = [], offers } = parts
  const list = suggestions.length > 0 && `${name}-suggestions`
  const input = html`<input id="${name}" name="${name}" type="${type}" value="${value}" autocomplete="${autocomplete}" dir="auto"
      ${numeric && html`inputmode="numeric"`} ${list && html`list="${list}"`} ${description(parts)}>
    ${list && html`<datalist id="${list}">${suggestions.map((suggestion) => html`<option value="${suggestion}"></option>`)}</datalist>`}
    ${offers && html`<p class="offers"><button class="visually-hidden" tabindex="-1" aria-hidden="true"></button>${offers}</p>`}`
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

/** A secret that is shown once, with a button that copies it (console.js). */
export function secretField(label: string, secret: string): Html {
  return html`<div class="secret"><label for="secret">${label}</label>
    <input id="secret" class="code-input" readonly value="${secret}" spellcheck="false" autocomplete="off" data-copy-field></div>`
}

export function hidden(name: string, value: string): Html {
  return html`<input type="hidden" name="${name}" value="${value}">`
}

/** Lists the problems above the form, each with a link to its field. A single problem is only at its field, if it has one. */
export function problemSummary(problems: Problems): Html | false {
  const lines = problems.map(({ field: name, message }) =>
    name === '' ? html`${message}` : html`<a href="#${name}">${message}</a>`,
  )
  if (lines.length < 2) return problems[0]?.field === '' && html`<p class="notice bad" role="alert">${lines}</p>`
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

/** Returns the attribute of the control that has the focus when the page opens. */
export function focusOf({ name, problems, focus }: Pick<FieldParts, 'name' | 'problems' | 'focus'>): Html | false {
  return (problems.length === 0 ? focus === true : problems[0]!.field === name) && html`autofocus`
}

/** Returns the attributes of a control: its focus, and those that tie hint and problem to it, for screen readers. */
function description(parts: FieldParts): Html {
  const problem = problemOf(parts)
  const ids = [parts.hint && `${parts.name}-hint`, problem && `${parts.name}-problem`].filter(Boolean).join(' ')
  return html`${ids && html`aria-describedby="${ids}"`} ${problem && html`aria-invalid="true"`} ${focusOf(parts)}`
}

/** The most characters of the encoded fields: they are part of the address, and a request's headers are limited. */
const MAX_LENGTH = 6000

/**
 * Returns the address of the form's page with what was typed; without it if it is too long. The query parameter `typed` carries it
 * past the sign-in, back to the page. It is signed with the token of the browser's cookie, so that no other site can fill in a form
 * for a visitor. Forms with a password do not take part (`keepsTyped` in visit.ts).
 */
export function withTyped(visit: Visit): string {
  const typed = JSON.stringify([...visit.form].filter(([name]) => name !== 'csrf'))
  const [address, fields] = [visit.call.request.url!, Buffer.from(typed).toString('base64url')]
  return fields.length > MAX_LENGTH ? address : signed(address, fields, tokenFor(visit))
}

/** Returns what was typed; undefined if the address has none, or it was not signed for this browser and this page. */
export function readTyped({ call: { request }, query, token }: Visit): URLSearchParams | undefined {
  const fields = fieldsOf(request.url!, query, token)
  if (fields === undefined) return undefined
  return new URLSearchParams(JSON.parse(Buffer.from(fields, 'base64url').toString()) as [string, string][])
}

/** Signs an address with the token of the new session. Leaves out what was typed if the old token did not sign it. */
export function signAgain(address: string, old: string | undefined, token: string): string {
  const [path = '', search] = address.split('?', 2)
  const query = new URLSearchParams(search)
  if (!query.has('typed')) return address
  const fields = fieldsOf(address, query, old)
  query.delete('typed')
  const plain = query.size === 0 ? path : `${path}?${query.toString()}`
  return fields === undefined ? plain : signed(plain, fields, token)
}

function signed(address: string, fields: string, token: string): string {
  return `${address}${address.includes('?') ? '&' : '?'}typed=${fields}.${signature(address, fields, token)}`
}

/** Returns the encoded fields if their signature is right. */
function fieldsOf(address: string, query: URLSearchParams, token: string | undefined): string | undefined {
  const [fields = '', given = ''] = query.get('typed')?.split('.') ?? []
  if (fields === '' || token === undefined) return undefined
  return isEqualInConstantTime(signature(address, fields, token), given) ? fields : undefined
}

/** Signs the fields for one page only: the path is part of the signed text. */
function signature(address: string, fields: string, token: string): string {
  return sign(`typed ${address.split('?', 1)[0]} ${fields}`, token)
}

function sign(text: string, token: string): string {
  return createHmac('sha256', token).update(text).digest('base64url')
}

/** Returns the query of a notice, signed for this browser, so that no other site's link can put words into one. */
export function signNotice<Said extends Record<string, string>>(visit: Visit, said: Said): Said & { signed: string } {
  return { ...said, signed: sign(`notice ${JSON.stringify(said)}`, tokenFor(visit)) }
}

/** Returns what `signNotice` has signed, by the same names in the same order; undefined if the address was made up. */
export function readNotice<Name extends string>({ query, token }: Visit, names: readonly Name[]) {
  const said = Object.fromEntries(names.map((name) => [name, query.get(name) ?? ''])) as Record<Name, string>
  if (token === undefined) return undefined
  return isEqualInConstantTime(sign(`notice ${JSON.stringify(said)}`, token), query.get('signed') ?? '')
    ? said
    : undefined
}

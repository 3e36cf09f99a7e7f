// Adding an animal by hand, with the API's own checks and messages beside the fields.
import { hash } from 'node:crypto'
import { newToken } from '../accounts/sessions.ts'
import { int64FromJsonNumber } from '../contract/int64.ts'
import { NAME_MAX_LENGTH } from '../contract/limits.ts'
import { DEFAULT_STATUS, type NewPet, parseNewPet, PET_STATUSES } from '../contract/pets.ts'
import { FieldProblem, InvalidFields } from '../contract/refused.ts'
import { fingerprintOf, idempotencyFor } from '../store/idempotency.ts'
import { STATUS_WORDS } from './animals.ts'
import { choice, field, form, hidden, type Problems, problemSummary } from './forms.ts'
import { html } from './html.ts'
import { type ConsoleRoute, forMembers, type MemberVisit, type Outcome, type HtmlPage } from './visit.ts'

export const addAnimalRoutes: readonly ConsoleRoute[] = [
  forMembers('GET', '/animals/new', (visit) => addPage(visit)),
  forMembers('POST', '/animals/new', add),
]

const STATUS_OPTIONS = PET_STATUSES.map((status) => [status, STATUS_WORDS[status]] as const)

function addPage(visit: MemberVisit, problems: Problems = []): HtmlPage {
  const typed = (name: string) => visit.form.get(name) ?? ''
  return {
    title: 'Add an animal',
    section: 'animals',
    ...(problems.length > 0 && { status: 400 }),
    body: html`<div class="narrow">
      <h1>Add an animal</h1>
      ${problemSummary(problems)}
      ${form(visit, {
        action: '/animals/new',
        submit: 'Add animal',
        cancel: '/animals',
        fields: html`${hidden('formId', typed('formId') || newToken())}
          ${field({
            name: 'name',
            label: 'Name',
            hint: `1 to ${NAME_MAX_LENGTH} characters, kept exactly as typed.`,
            value: typed('name'),
            problems,
          })}
          ${field({
            name: 'categoryId',
            label: 'Category',
            hint: 'The number of the category that it belongs to.',
            numeric: true,
            value: typed('categoryId'),
            problems,
          })}
          ${choice({ name: 'status', label: 'Status', value: typed('status') || DEFAULT_STATUS, options: STATUS_OPTIONS, problems })}`,
      })}
    </div>`,
  }
}

async function add(visit: MemberVisit): Promise<Outcome> {
  const { form: typed, store, who, now } = visit
  const parsed = parseNewPet(asBody(typed))
  if (parsed instanceof InvalidFields) return addPage(visit, parsed.problems)
  const key = idempotencyKey(typed.get('formId') ?? '', parsed)
  const created = await store.pets.create(parsed, idempotencyFor(who.account.id, key, parsed, now))
  if ('pet' in created) return { redirect: `/animals?added=${created.pet.id}` }
  return addPage(visit, [new FieldProblem('', 'This form is already being processed; send it again in a few seconds.')])
}

/** Returns the JSON body that the API would get: a category that is a number becomes one, exactly; empty fields are left out. */
function asBody(typed: URLSearchParams): Record<string, unknown> {
  const text = (name: string) => typed.get(name) || undefined
  const category = typed.get('categoryId')?.trim() ?? ''
  return { name: text('name'), categoryId: int64FromJsonNumber(category) ?? (category || undefined), status: text('status') }
}

/** A form sent twice adds one animal; if the user goes back and changes it, it adds the other animal that was meant. */
function idempotencyKey(formId: string, newPet: NewPet): string {
  return `console:${hash('sha256', `${formId} ${fingerprintOf(newPet).toString('hex')}`)}`
}

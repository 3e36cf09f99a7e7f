// Merges the form of an animal three ways: what the form showed, what was typed, and what is stored now. A field that was left
// alone takes the stored value. A field that both changed is asked about: the next form carries the question and its answer. Below
// the merge, how it is shown.
import { FieldProblem } from '../../contract/errors.ts'
import { fieldText, inWords, labelOf, textInWords } from '../../contract/pet-words.ts'
import { FIELD_NAMES, type FieldName, type Pet } from '../../contract/pets.ts'
import { html, type Html, isolated } from '../../http/html/html.ts'
import { animalField, type AnimalFieldParts, readField } from './animal-form.ts'
import { type Change, whoChanged } from './animal-history.ts'
import { focusOf, hidden } from '../every-page/forms.ts'
import type { MemberVisit } from '../every-page/visit.ts'

type Texts = Partial<Record<FieldName, string>>

export interface Merge {
  /** The text of each field after the merge: what was typed, if the field is asked about. */
  values: Record<FieldName, string>
  /** The fields that both changed, to different values. */
  asked: readonly FieldName[]
  /** The fields that were asked about before, and for which neither value was chosen. */
  unanswered: readonly FieldName[]
  /** The fields that changed in the store since the form was opened, and are not asked about: to other values than were typed. */
  changedMeanwhile: readonly FieldName[]
  /** The fields that were changed, and are stored so since: the form was sent twice, or a colleague made the same change. */
  storedAlready: readonly FieldName[]
  /** What the form showed. A form without a field that was added since does not tell. */
  shown: Texts
}

/** Merges what was sent with the animal. Returns the animal unchanged if nothing was sent. */
export function mergeForm({ form, categories }: MemberVisit, pet: Pet): Merge {
  const [sentShown, theirs] = [readTexts(form.get('shown')), readTexts(form.get('theirs'))]
  const [values, shown, changed] = [{} as Record<FieldName, string>, {} as Texts, new Set<FieldName>()]
  const storedAlready: FieldName[] = []
  const asked = FIELD_NAMES.filter((name) => {
    const stored = fieldText(pet, name)
    const answer = theirs[name] === undefined ? null : form.get(answerName(name))
    const isAnswered = answer === 'theirs' || answer === 'yours'
    // The visitor has answered, and so has seen what was stored then.
    const base = isAnswered ? theirs[name] : sentShown[name]
    const sent = form.get(name)
    const read = sent === null ? undefined : String(readField(name, sent, categories) ?? '')
    const typed = answer === 'theirs' ? base! : (knownText(read, [base, stored]) ?? sent ?? undefined)
    const isLeftAlone = typed === undefined || typed === base || typed === stored
    if (base !== undefined) shown[name] = base
    const hasChanged = base !== undefined && base !== stored
    if (hasChanged && typed !== stored) changed.add(name)
    if (hasChanged && typed === stored) storedAlready.push(name)
    values[name] = isLeftAlone ? stored : typed
    return !isLeftAlone && base !== stored
  })
  return {
    values,
    asked,
    unanswered: asked.filter((name) => theirs[name] !== undefined && shown[name] !== theirs[name]),
    changedMeanwhile: [...changed].filter((name) => !asked.includes(name)),
    storedAlready,
    shown,
  }
}

/** Returns the name of the field that says which value to keep, 'theirs' or 'yours'. */
function answerName(name: FieldName): string {
  return `keep_${name}`
}

/** Returns the known text that a value is another spelling of: browsers drop line breaks in a text field. */
function knownText(value: string | undefined, known: readonly (string | undefined)[]): string | undefined {
  return known.find((text) => text !== undefined && (text === value || text.replaceAll(/[\r\n]/g, '') === value))
}

/** Reads texts of fields from JSON, in which line breaks pass through a browser unchanged. */
function readTexts(json: string | null): Texts {
  try {
    const texts = JSON.parse(json ?? '{}') as Record<string, unknown> | null
    return Object.fromEntries(
      FIELD_NAMES.flatMap((name) => (typeof texts?.[name] === 'string' ? [[name, texts[name]]] : [])),
    )
  } catch {
    return {}
  }
}

/** Returns the stored value of a field, as people read it. */
type Words = (name: FieldName) => string

export function savedNotice(query: URLSearchParams, words: Words, back: string): Html | undefined {
  const meanwhile = FIELD_NAMES.filter((name) => query.get('meanwhile')?.split(',').includes(name))
  const isSaved = query.has('changed')
  if (!isSaved && meanwhile.length === 0) return undefined
  return html`<div class="notice good" role="status">
    <p>${isSaved ? 'Saved.' : 'There was nothing to save.'} <a href="${back}">Back to the list</a></p>
    ${meanwhile.length > 0 && html`<p>Changed while you were editing, and kept:</p>${valueList(meanwhile, words)}`}
  </div>`
}

export function meanwhileNotice(merge: Merge, words: Words, last: Change | undefined, page: string): Html | undefined {
  const { asked, changedMeanwhile } = merge
  if (asked.length === 0 && changedMeanwhile.length === 0) return undefined
  const both = asked.map(labelOf).join(' and ')
  return html`<div class="notice warn" role="alert">
    <p><strong>${whoChanged(last)}</strong> Nothing of this form was saved yet.</p>
    ${changedMeanwhile.length > 0 && html`<p>What changed is in the form below:</p>${valueList(changedMeanwhile, words)}`}
    ${asked.length > 0 && html`<p>You changed ${both} here, too: choose which to keep.</p>`}
    <p>Save, or <a href="${page}">start from what is stored</a>.</p>
  </div>`
}

function valueList(names: readonly FieldName[], words: Words): Html {
  return html`<ul>${names.map((name) => html`<li>${labelOf(name)}: ${isolated(words(name))}</li>`)}</ul>`
}

export function unansweredProblems({ unanswered }: Merge): FieldProblem[] {
  return unanswered.map((name) => new FieldProblem(answerName(name), `${labelOf(name)}: choose which to keep`))
}

/** Renders what the next form must tell of this merge: what it shows and, for a field that is asked about, what was shown first. */
export function carriedFields({ asked, shown }: Merge, pet: Pet): Html {
  const stored = (names: readonly FieldName[]) => Object.fromEntries(names.map((name) => [name, fieldText(pet, name)]))
  const first = Object.fromEntries(asked.map((name) => [name, shown[name]]))
  return html`${hidden('shown', JSON.stringify({ ...stored(FIELD_NAMES), ...first }))}
    ${asked.length > 0 && hidden('theirs', JSON.stringify(stored(asked)))}`
}

export function mergedFields(merge: Merge, pet: Pet, last: Change | undefined, parts: AnimalFieldParts): Html[] {
  const theirs = last?.byVisitor ? 'Keep what is stored' : 'Keep theirs'
  return FIELD_NAMES.map((name, nth) => {
    if (!merge.asked.includes(name)) return animalField(name, { ...parts, focus: parts.focus === true && nth === 0 })
    return question(name, html`${theirs}: ${isolated(inWords(pet, name, parts.categories))}`, merge.shown[name], parts)
  })
}

/** Neither answer is chosen in advance, so that no visitor undoes a change by accident. */
function question(name: FieldName, theirs: Html, was: string | undefined, parts: AnimalFieldParts): Html {
  const id = answerName(name)
  const problem = parts.problems.find(({ field }) => field === id)?.message
  const describedBy = [was !== undefined && `${id}-hint`, problem !== undefined && `${id}-problem`].filter(Boolean)
  return html`<fieldset class="question${problem && ' wrong'}" ${describedBy.length > 0 && html`aria-describedby="${describedBy.join(' ')}"`}>
    <legend>${labelOf(name)}</legend>
    ${was !== undefined && html`<p class="hint" id="${id}-hint">When you opened the form: ${isolated(textInWords(name, was, parts.categories))}</p>`}
    ${problem && html`<p class="problem" id="${id}-problem">${problem}</p>`}
    <label><input type="radio" id="${id}" name="${id}" value="theirs" ${focusOf({ ...parts, name: id })}> <span>${theirs}</span></label>
    <label><input type="radio" name="${id}" value="yours"> <span>Keep yours, as in the field below</span></label>
    ${animalField(name, parts, 'Yours')}
  </fieldset>`
}

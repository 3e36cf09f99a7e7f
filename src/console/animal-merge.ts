// Merges the form of an animal three ways: what the form showed, what was typed, and what is stored now. A field that was left
// alone takes the stored value. A field that both changed is asked about: the next form carries the question and its answer.
import { FIELD_NAMES, type FieldName, type Pet } from '../contract/pets.ts'
import { fieldText, readField } from './animal-form.ts'

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
  /** Whether a field was changed, and is stored so since: the form was sent twice, or a colleague made the same change. */
  isStoredAlready: boolean
  /** What the form showed. A form of an earlier release, or without a field that was added since, does not tell. */
  shown: Texts
}

/** Merges what was sent with the animal. Returns the animal unchanged if nothing was sent. */
export function mergeForm(form: URLSearchParams, pet: Pet): Merge {
  const [sentShown, theirs] = [readTexts(form.get('shown')), readTexts(form.get('theirs'))]
  const [values, shown, changed] = [{} as Record<FieldName, string>, {} as Texts, new Set<FieldName>()]
  let isStoredAlready = false
  const asked = FIELD_NAMES.filter((name) => {
    const stored = fieldText(pet, name)
    const answer = theirs[name] === undefined ? null : form.get(answerName(name))
    const isAnswered = answer === 'theirs' || answer === 'yours'
    // Whoever has answered has seen what was stored then.
    const base = isAnswered ? theirs[name] : sentShown[name]
    const typed = answer === 'theirs' ? base! : typedText(name, form.get(name), [base, stored])
    const isLeftAlone = typed === undefined || typed === base || typed === stored
    if (base !== undefined) shown[name] = base
    const hasChanged = base !== undefined && base !== stored
    if (hasChanged && typed !== stored) changed.add(name)
    isStoredAlready ||= hasChanged && typed === stored
    values[name] = isLeftAlone ? stored : typed
    return !isLeftAlone && base !== stored
  })
  return {
    values,
    asked,
    unanswered: asked.filter((name) => theirs[name] !== undefined && shown[name] !== theirs[name]),
    changedMeanwhile: [...changed].filter((name) => !asked.includes(name)),
    isStoredAlready,
    shown,
  }
}

/** Returns the name of the field that says which value to keep, 'theirs' or 'yours'. */
export function answerName(name: FieldName): string {
  return `keep_${name}`
}

/**
 * Returns what was typed, or the known text that it is another spelling of: browsers drop line breaks in a text field, and a
 * number may have blanks around it. Returns undefined if the form has no such field.
 */
function typedText(name: FieldName, typed: string | null, known: readonly (string | undefined)[]): string | undefined {
  if (typed === null) return undefined
  const value = String(readField(name, typed) ?? '')
  return known.find((text) => text === value || text?.replaceAll(/[\r\n]/g, '') === value) ?? typed
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

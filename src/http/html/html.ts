// HTML as a tagged template, which escapes interpolated text but not interpolated HTML.

export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** What a template accepts; `undefined` and `false` render as nothing. */
type Content = Html | string | number | bigint | undefined | false | readonly Content[]

export function html(parts: TemplateStringsArray, ...contents: Content[]): Html {
  return new Html(parts.map((part, index) => part + render(contents[index])).join(''))
}

function render(content: Content): string {
  if (content === undefined || content === false) return ''
  if (content instanceof Html) return content.text
  return typeof content === 'object' ? content.map(render).join('') : escape(String(content))
}

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

function escape(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => ENTITIES[character]!)
}

/** Unicode's control characters for the direction of text. With them, one name can look like another. */
const BIDI_CONTROLS = /([\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069])/g

/** Renders text that a user typed: makes bidi controls visible, and keeps the text's direction from changing the page's. */
export function isolated(text: string): Html {
  const parts = text.split(BIDI_CONTROLS)
  return html`<bdi>${parts.map((part, index) => (index % 2 === 0 ? part : html`<span class="control">${codeOf(part)}</span>`))}</bdi>`
}

/**
 * Renders the text of a change, in which names are quoted, with a direction for each name: of `"א" → "ב"` as one text, browsers show the
 * new name first.
 */
export function isolatedNames(text: string): Html {
  const parts = text.split(/("(?:[^"\\]|\\.)*")/).filter((part) => part !== '')
  return parts.length === 1 ? isolated(text) : html`<bdi dir="ltr">${parts.map(isolated)}</bdi>`
}

/** Makes bidi controls visible in text that takes no markup, such as the title of a page. */
export function withVisibleControls(text: string): string {
  return text.replaceAll(BIDI_CONTROLS, (control) => `[${codeOf(control)}]`)
}

/** Renders what a list shows if it has no entries; `next` says how to go on. */
export function emptyState(title: string, next: Html | string): Html {
  return html`<div class="empty"><p><strong>${title}</strong></p><p>${next}</p></div>`
}

/** Returns the Unicode code point, such as U+202E. */
function codeOf(character: string): string {
  return `U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`
}

// HTML as a tagged template: interpolated text is escaped, interpolated HTML is not.

export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** What may be interpolated; `undefined` and `false` render as nothing. */
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

/** Change the direction of the text around them, so that one name can look like another. */
const BIDI_CONTROLS = /([\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069])/g

/** Text that somebody typed: its direction does not reach the page around it, and characters that change it are shown. */
export function isolated(text: string): Html {
  const parts = text.split(BIDI_CONTROLS)
  return html`<bdi>${parts.map((part, index) => (index % 2 === 0 ? part : html`<span class="control">${codeOf(part)}</span>`))}</bdi>`
}

/** The same for places that take no markup, such as the title of a page. */
export function withVisibleControls(text: string): string {
  return text.replaceAll(BIDI_CONTROLS, (control) => `[${codeOf(control)}]`)
}

function codeOf(character: string): string {
  return `U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`
}

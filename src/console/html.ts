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

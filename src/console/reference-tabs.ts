// The tabs that link the three pages of the reference.
import { html, type Html } from './html.ts'

const TABS = { '/docs': 'Operations', '/docs/errors': 'Error codes', '/docs/deprecations': 'Deprecations' } as const

export function referenceTabs(current: keyof typeof TABS): Html {
  return html`<nav aria-label="Reference"><ul class="switch">${Object.entries(TABS).map(
    ([address, words]) =>
      html`<li><a href="${address}" ${address === current && html`aria-current="page"`}>${words}</a></li>`,
  )}</ul></nav>`
}

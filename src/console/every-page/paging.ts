// The links between the pages of a list: towards older entries, or from the first to more.
import { html, type Html } from '../../http/html/html.ts'

/** The words of links back to the start of a list, to the page before, and to the one that follows. */
const BACK = { newest: '← Newest', oldest: '← Oldest', first: '← First' } as const
const BEFORE = { newer: '← Newer', previous: '← Previous' } as const
const AFTER = { older: 'Older →', next: 'Next →', searchOlder: 'Search older animals →' } as const

/** The addresses of other pages: none before the first page, none after the last. */
export type Pages = Partial<Record<keyof (typeof BACK & typeof BEFORE & typeof AFTER), string | undefined>>

/** Renders nothing if one page has all entries. `range` says which of how many are shown. */
export function paging(pages: Pages, range?: string): Html | false {
  const link = (words: Partial<Record<keyof Pages, string>>, rel?: Html) =>
    Object.entries(words).map(([name, text]) => {
      const address = pages[name as keyof Pages]
      return address !== undefined && html`<a class="button" ${rel} href="${address}">${text}</a>`
    })
  const isLast = Object.keys(AFTER).every((name) => pages[name as keyof Pages] === undefined)
  if (!range && Object.values(pages).every((address) => address === undefined)) return false
  return html`<nav class="paging" aria-label="Pages">
    <span class="paging-back">${link(BACK)} ${link(BEFORE, html`rel="prev"`)}</span>
    <span class="quiet-text">${range ?? (isLast && pages.newest !== undefined && 'These are the oldest.')}</span>
    ${link(AFTER, html`rel="next"`)}
  </nav>`
}

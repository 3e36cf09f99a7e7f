// The links between the pages of a list: towards older entries, or from the first to more.
import { html, type Html } from '../../http/html/html.ts'

/** The addresses of other pages: none before the first page, none after the last. */
type Pages = Partial<Record<'newest' | 'newer' | 'older' | 'first' | 'more' | 'searchOlder', string | undefined>>

/** Renders nothing if one page has all entries. */
export function paging(pages: Pages): Html | false {
  const link = (address: string | undefined, words: string, rel?: Html) =>
    address !== undefined && html`<a class="button" ${rel} href="${address}">${words}</a>`
  const { newest, newer, older, first, more, searchOlder } = pages
  const back = link(newest, '← Newest') || link(first, '← First')
  const next =
    link(older, 'Older →', html`rel="next"`) ||
    link(more, 'More →', html`rel="next"`) ||
    link(searchOlder, 'Search older animals →', html`rel="next"`)
  if (!back && !next) return false
  return html`<nav class="paging" aria-label="Pages">
    <span class="paging-back">${back} ${link(newer, '← Newer', html`rel="prev"`)}</span>
    ${next || (newest !== undefined && html`<span class="quiet-text">These are the oldest.</span>`)}
  </nav>`
}

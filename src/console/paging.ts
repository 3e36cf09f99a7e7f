// The links between the pages of a list that goes towards older entries.
import { html, type Html } from '../http/html.ts'

/** The addresses of other pages: none before the first page, none after the last. */
type Pages = Partial<Record<'newest' | 'newer' | 'older', string | undefined>>

/** `range` says which entries the page shows. Renders nothing if one page has all entries. */
export function paging({ newest, newer, older }: Pages, range?: string | false, label = 'Pages'): Html | false {
  const link = (address: string | undefined, words: string, rel?: Html) =>
    address !== undefined && html`<a class="button" ${rel} href="${address}">${words}</a>`
  const [back, next] = [link(newest, '← Newest'), link(older, 'Older →', html`rel="next"`)]
  if (!back && !next) return false
  return html`<nav class="paging" aria-label="${label}">
    <span class="paging-back">${back} ${link(newer, '← Newer', html`rel="prev"`)}</span>
    ${range && html`<span class="quiet-text number">${range}</span>`}
    ${next || html`<span class="quiet-text">These are the oldest.</span>`}
  </nav>`
}

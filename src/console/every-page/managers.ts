// Pages that only managers may open. The role is read with each request, so that a change of it counts at once.
import { html } from '../../http/html/html.ts'
import { problemPage } from './problem-pages.ts'
import { type ConsoleRoute, forMembers, type Handle, HOME, isManager, type MemberVisit } from './visit.ts'

export const MANAGERS_ONLY_PAGE = problemPage(
  403,
  'Only managers can do this',
  html`<p>Nothing was changed. Ask a manager of this store to do it, or to make you one.</p>`,
  html`<a class="button primary" href="${HOME}">Go to the animals</a>`,
)

export function forManagers(method: ConsoleRoute['method'], path: string, handle: Handle<MemberVisit>): ConsoleRoute {
  return forMembers(method, path, (visit) => (isManager(visit) ? handle(visit) : MANAGERS_ONLY_PAGE))
}

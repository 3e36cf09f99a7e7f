// Pages that only managers may open. The role is read with each request, so that a change of it counts at once.
import { html } from '../../http/html/html.ts'
import { problemPage } from './problem-pages.ts'
import { forMembers, HOME, isManager, type MakeRoute, type MemberVisit } from './visit.ts'

export const MANAGERS_ONLY_PAGE = problemPage(
  403,
  'Only managers can do this',
  html`<p>Nothing was changed. Ask a manager of this store to do it, or to make you one.</p>`,
  html`<a class="button primary" href="${HOME}">Go to the animals</a>`,
)

export const forManagers: MakeRoute<MemberVisit> = (method, path, handle, options) =>
  forMembers(method, path, (visit) => (isManager(visit) ? handle(visit) : MANAGERS_ONLY_PAGE), options)

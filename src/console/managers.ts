// Pages that only managers may open. The role is read with each request, so that a change of it counts at once.
import { html } from '../http/html.ts'
import {
  type ConsoleRoute,
  forMembers,
  HOME,
  type HtmlPage,
  isManager,
  type MemberVisit,
  type Outcome,
} from './visit.ts'

const MANAGERS_ONLY_PAGE: HtmlPage = {
  status: 403,
  title: 'For managers',
  body: html`<h1>Only managers can do this</h1>
    <p>Nothing was changed. Ask a manager of this store to do it, or to make you one.</p>
    <p><a class="button primary" href="${HOME}">Go to the animals</a></p>`,
}

export function forManagers(
  method: 'GET' | 'POST',
  path: string,
  handle: (visit: MemberVisit) => Outcome | Promise<Outcome>,
): ConsoleRoute {
  return forMembers(method, path, (visit) => (isManager(visit) ? handle(visit) : MANAGERS_ONLY_PAGE))
}

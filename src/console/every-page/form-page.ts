// A page with one form: its heading, what was wrong with the last attempt, the form. `askAgain` is such a page for a press whose session
// had ended. `about` looks up what a page is about.
import { html, type Html } from '../../http/html/html.ts'
import { form, type FormParts, hidden, type Problems, problemSummary } from './forms.ts'
import { notFoundPage } from './problem-pages.ts'
import type { HtmlPage, MemberVisit, Outcome, Section, Visit } from './visit.ts'

interface FormPage extends FormParts {
  title: string
  section?: Section
  heading?: Html
  problems?: Problems
  /** The status of the page if there are problems. */
  refusedAs?: 400 | 409
  /** What stands between the heading and the form, and what follows the form. */
  above?: Html | false | undefined
  below?: Html
}

export function formPage(visit: Visit, page: FormPage): HtmlPage {
  const { title, section, heading = title, problems = [], refusedAs = 400, above, below, ...parts } = page
  return {
    title,
    ...(section && { section }),
    ...(problems.length > 0 && { status: refusedAs }),
    body: html`<div class="narrow">
      <h1>${heading}</h1>
      ${problemSummary(problems)}
      ${above}
      ${form(visit, parts)}
      ${below}
    </div>`,
  }
}

/**
 * Asks whether to do what was pressed when the session had ended: one button sends the same form. Another person may
 * have signed in, so nothing is done without it. For the GET of a path whose POST `keepsTyped`, if `visit.isRestored`.
 */
export function askAgain(visit: Visit, page: FormPage): HtmlPage {
  const { title, heading = title, above, ...parts } = page
  const fields = html`${[...visit.form].map(([name, value]) => hidden(name, value))}`
  const asking = { title: `Nothing was done: ${title}?`, heading: html`Nothing was done: ${heading}?` }
  const ended = html`<p>Your session had ended.</p>${above}`
  return formPage({ ...visit, isRestored: false }, { ...parts, ...asking, above: ended, fields })
}

/** Returns a wrapper for pages about what the last part of the address names; `missing` answers if nothing is found. */
export function about<T>(
  find: (visit: MemberVisit, id: string) => T | undefined | Promise<T | undefined>,
  missing: (visit: MemberVisit) => Outcome | Promise<Outcome> = notFoundPage,
) {
  return (handle: (visit: MemberVisit, found: T) => Outcome | Promise<Outcome>) =>
    async (visit: MemberVisit): Promise<Outcome> => {
      const found = await find(visit, Object.values(visit.call.parameters)[0]!)
      return found === undefined ? missing(visit) : handle(visit, found)
    }
}

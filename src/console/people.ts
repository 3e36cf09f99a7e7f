// The pages of people, for managers: who has an account, invitations, roles, links for a new password, and removal.
import { LINK_DAYS, ROLE_WORDS, roleWords } from '../accounts/accounts.ts'
import { FieldProblem } from '../contract/errors.ts'
import { BASE_PATH } from '../contract/operations.ts'
import type { Account, Role } from '../store/account-store.ts'
import { html, isolated } from '../http/html.ts'
import { choice, form, hidden, type Problems, problemSummary, secretField } from './forms.ts'
import { linkAddress } from './link.ts'
import { forManagers } from './managers.ts'
import { paging } from './paging.ts'
import { notFoundPage } from './problem-pages.ts'
import { ago, day } from './times.ts'
import { baseAddress, type ConsoleRoute, type HtmlPage, type MemberVisit, type Outcome } from './visit.ts'

const PEOPLE_SHOWN = 20

export const peopleRoutes: readonly ConsoleRoute[] = [
  forManagers('GET', '/people', peoplePage),
  forManagers('POST', '/people', (visit) => newLinkPage(visit)),
  forManagers('GET', '/people/{id}', withPerson(personPage)),
  forManagers('POST', '/people/{id}', withPerson(changeRole)),
  forManagers('POST', '/people/{id}/link', withPerson(newLinkPage)),
  forManagers('GET', '/people/{id}/remove', withPerson(confirmPage)),
  forManagers('POST', '/people/{id}/remove', withPerson(remove)),
]

async function peoplePage(visit: MemberVisit): Promise<HtmlPage> {
  const { store, query, now } = visit
  const after = await store.accounts.accountById(query.get('after') ?? '')
  const found = await store.accounts.pageOfPeople({ after, limit: PEOPLE_SHOWN + 1 })
  const people = found.slice(0, PEOPLE_SHOWN)
  const older = found.length > people.length ? `/people?after=${people.at(-1)!.id}` : undefined
  return {
    title: 'People',
    section: 'people',
    body: html`<div class="page-head"><h1>People</h1>${form(visit, { action: '/people', submit: 'Invite somebody', fields: [] })}</div>
      ${query.has('removed') && html`<p class="notice good" role="status">The account was removed, with its keys.</p>`}
      <table class="table keys">
        <caption class="visually-hidden">People, newest first</caption>
        <thead><tr><th scope="col">Email address</th><th scope="col">Role</th><th scope="col">Since</th><th scope="col">Last seen</th></tr></thead>
        <tbody>${people.map(
          (person) => html`<tr><th scope="row"><a href="/people/${person.id}">${isolated(person.email)}</a></th>
            <td data-label="Role">${roleWords(person)}</td><td data-label="Since">${day(person.createdAt)}</td>
            <td data-label="Last seen">${person.lastSeenAt === 0 ? 'Never' : ago(person.lastSeenAt, now)}</td></tr>`,
        )}</tbody>
      </table>${paging({ newest: after && '/people', older })}`,
  }
}

/** Looks up the person that the address names. */
function withPerson(handle: (visit: MemberVisit, person: Account) => Outcome | Promise<Outcome>) {
  return async (visit: MemberVisit): Promise<Outcome> => {
    const person = await visit.store.accounts.accountById(visit.call.parameters['id']!)
    return person === undefined ? notFoundPage(visit) : handle(visit, person)
  }
}

const ROLE_HINT =
  'Managers invite and remove people, and remove animals. Keys of a member who becomes one without keys are revoked at once, for good.'

function personPage(visit: MemberVisit, person: Account, problems: Problems = []): HtmlPage {
  // A role of a newer program can be kept.
  const options = Object.entries({ ...ROLE_WORDS, [person.role]: roleWords(person) })
  const role = choice({ name: 'role', label: 'Role', value: person.role, options, hint: ROLE_HINT, problems })
  return {
    title: person.email,
    section: 'people',
    ...(problems.length > 0 && { status: 409 }),
    body: html`<div class="narrow"><p class="back"><a href="/people">← People</a></p>
      <h1>${isolated(person.email)}</h1>
      ${visit.query.has('changed') && html`<p class="notice good" role="status">Saved.</p>`}
      ${problemSummary(problems)}
      <p class="lead">Account created on ${day(person.createdAt)}.</p>
      ${form(visit, { action: `/people/${person.id}`, submit: 'Save', fields: html`${hidden('shown', person.role)}${role}` })}
      <h2>Forgotten password</h2>
      <p>You pass the link on yourself. All sessions of the account end when it is used.</p>
      ${form(visit, { action: `/people/${person.id}/link`, submit: 'Make a link for a new password', fields: [] })}
      <h2>Removal</h2>
      <p><a class="button danger-outline" href="/people/${person.id}/remove">Remove the account…</a></p>
    </div>`,
  }
}

/** Returns the person with the role that the page showed: the change is made only if they still have it. */
function asShown({ form: sent }: MemberVisit, person: Account): Account {
  return { ...person, role: (sent.get('shown') ?? '') as Role }
}

async function changeRole(visit: MemberVisit, person: Account): Promise<Outcome> {
  const role = visit.form.get('role') as Role
  const { account } = visit.who
  const problem =
    Object.hasOwn(ROLE_WORDS, role) || role === person.role
      ? await visit.accounts.setRole(asShown(visit, person), role, 'console', account)
      : new FieldProblem('role', 'Choose one of the listed roles')
  if (problem !== undefined) return personPage(visit, person, [problem])
  // Managers who give up their role may no longer open the page of a person.
  return { redirect: person.id === account.id ? '/account' : `/people/${person.id}?changed=yes` }
}

function confirmPage(visit: MemberVisit, person: Account, problems: Problems = []): Outcome {
  // Asks for the password.
  if (person.id === visit.who.account.id) return { redirect: '/account/delete' }
  return {
    title: 'Remove an account',
    section: 'people',
    ...(problems.length > 0 && { status: 409 }),
    body: html`<div class="narrow">
      <h1>Remove ${isolated(person.email)}?</h1>
      ${problemSummary(problems)}
      <p>${roleWords(person)}. Their keys and sessions end at once, for good. What they did stays in the histories, by “A deleted account”.</p>
      ${form(visit, {
        action: `/people/${person.id}/remove`,
        submit: 'Remove account',
        danger: true,
        cancel: `/people/${person.id}`,
        fields: hidden('shown', person.role),
      })}
    </div>`,
  }
}

async function remove(visit: MemberVisit, person: Account): Promise<Outcome> {
  if (person.id === visit.who.account.id) return confirmPage(visit, person)
  const problem = await visit.accounts.remove(asShown(visit, person), 'console', visit.who.account)
  return problem === undefined ? { redirect: '/people?removed=yes' } : confirmPage(visit, person, [problem])
}

/** Answers the form itself, without a redirect, so that no address, reload or cache can show the link again. */
async function newLinkPage(visit: MemberVisit, person?: Account): Promise<Outcome> {
  const token = await visit.accounts.makeLink(visit.who.account, person)
  // A colleague has removed the person, or has made the visitor a member.
  if (token === undefined) return { redirect: '/people' }
  const console = baseAddress(visit).slice(0, -BASE_PATH.length)
  return {
    title: person === undefined ? 'Invitation' : 'Link for a new password',
    section: 'people',
    body: html`<h1>A link for ${person === undefined ? 'somebody' : isolated(person.email)}</h1>
      <p class="notice good" role="status">It is shown only once, works once, and for ${LINK_DAYS} days. Pass it on yourself, over a way
      that only the recipient reads: whoever opens it can ${person === undefined ? 'create an account' : 'set the password'}.</p>
      ${secretField('Link', console + linkAddress(token))}
      ${console.includes('//HOST') && html`<p>Replace <code>HOST</code> by the name in the address bar of this page.</p>`}
      <p class="actions"><a class="button primary" href="/people">I’ve passed it on</a></p>`,
  }
}

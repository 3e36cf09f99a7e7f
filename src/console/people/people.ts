// The pages of people, for managers: who has an account, invitations, roles, links for a new password, and removal.
import { NoAccount } from '../../accounts/account-problems.ts'
import { ROLE_WORDS, roleWords } from '../../accounts/accounts.ts'
import { FieldProblem } from '../../contract/errors.ts'
import { BASE_PATH } from '../../contract/operations.ts'
import type { Account, Role } from '../../store/account-store.ts'
import { isPerson, type Link, LINK_DAYS } from '../../store/people-store.ts'
import { html, type Html, isolated } from '../../http/html/html.ts'
import { about, formPage } from '../every-page/form-page.ts'
import { choice, form, hidden, type Problems, problemSummary, secretField } from '../every-page/forms.ts'
import { linkAddress } from './link.ts'
import { forManagers } from '../every-page/managers.ts'
import { paging } from '../every-page/paging.ts'
import { notFoundPage } from '../every-page/problem-pages.ts'
import { day, localDay, minute } from '../every-page/times.ts'
import { baseAddress, type ConsoleRoute, type HtmlPage, type MemberVisit, type Outcome } from '../every-page/visit.ts'

const PEOPLE_SHOWN = 20
const LINKS_SHOWN = 100

const withPerson = about(async ({ store }, id) => {
  const person = await store.accounts.accountById(id)
  return person && isPerson(person) ? person : undefined
}, gonePage)

export const peopleRoutes: readonly ConsoleRoute[] = [
  forManagers('GET', '/people', (visit) => peoplePage(visit)),
  forManagers('POST', '/people', (visit) => newLinkPage(visit)),
  forManagers('POST', '/people/links/{hash}', withdraw),
  forManagers('GET', '/people/{id}', withPerson(personPage)),
  forManagers('POST', '/people/{id}', withPerson(changeRole)),
  forManagers('POST', '/people/{id}/link', withPerson(newLinkPage)),
  forManagers('GET', '/people/{id}/remove', withPerson(confirmPage)),
  forManagers('POST', '/people/{id}/remove', withPerson(remove)),
]

async function peoplePage(visit: MemberVisit, problems: Problems = []): Promise<HtmlPage> {
  const { store, query } = visit
  const after = await store.accounts.accountById(query.get('after') ?? '')
  const found = await store.accounts.pageOfPeople({ after, limit: PEOPLE_SHOWN + 1 })
  const people = found.slice(0, PEOPLE_SHOWN)
  const older = found.length > people.length ? `/people?after=${people.at(-1)!.id}` : undefined
  return {
    title: 'People',
    section: 'people',
    ...(problems.length > 0 && { status: 409 }),
    body: html`<div class="page-head"><h1>People</h1><div class="head-actions"><a class="button" href="/people/keys">All keys</a>
        ${form(visit, { action: '/people', submit: 'Invite somebody' })}</div></div>
      ${problemSummary(problems)}
      ${query.has('removed') && html`<p class="notice good" role="status">The account was removed, with its keys.</p>`}
      ${query.has('withdrawn') && html`<p class="notice good" role="status">The link was withdrawn: it does not work any more.</p>`}
      <table class="table keys">
        <caption class="visually-hidden">People, newest first</caption>
        <thead><tr><th scope="col">Email address</th><th scope="col">Role</th><th scope="col">Since</th><th scope="col">Last seen</th></tr></thead>
        <tbody>${people.map(
          (person) => html`<tr><th scope="row"><a href="/people/${person.id}">${isolated(person.email)}</a></th>
            <td data-label="Role">${roleWords(person)}</td><td data-label="Since">${day(person.createdAt)}</td>
            <td data-label="Last seen">${person.lastSeenAt === 0 ? 'Never' : minute(person.lastSeenAt)}</td></tr>`,
        )}</tbody>
      </table>${paging({ newest: after && '/people', older })}
      ${after === undefined && (await unusedLinks(visit))}`,
  }
}

/** Shows no link, only its hash: nobody can read it again. */
async function unusedLinks(visit: MemberVisit): Promise<Html | false> {
  const links = await visit.store.accounts.links(visit.now, LINKS_SHOWN)
  const row = ({ hash, maker, account, expiresAt }: Link) => {
    const kind = account === undefined ? html`Invitation` : html`New password for ${isolated(account.email)}`
    const submit = html`<button class="button quiet danger-outline">Withdraw<span class="visually-hidden"> ${kind}, made by ${maker}</span></button>`
    return html`<tr><th scope="row">${kind}</th><td data-label="Made by">${isolated(maker)}</td>
      <td data-label="Until">${localDay(expiresAt)}</td><td class="key-actions">${form(visit, { action: `/people/links/${hash}`, submit })}</td></tr>`
  }
  return (
    links.length > 0 &&
    html`<section aria-labelledby="links"><h2 id="links">Unused links</h2>
      <table class="table keys">
        <caption class="visually-hidden">Links that nobody has used, newest first</caption>
        <thead><tr><th scope="col">For</th><th scope="col">Made by</th><th scope="col">Works until</th>
          <th scope="col"><span class="visually-hidden">Actions</span></th></tr></thead>
        <tbody>${links.map(row)}</tbody>
      </table>
      ${links.length === LINKS_SHOWN && html`<p class="quiet-text">Only the newest ${LINKS_SHOWN} are shown.</p>`}
    </section>`
  )
}

async function withdraw(visit: MemberVisit): Promise<Outcome> {
  const problem = await visit.accounts.withdrawLink(visit.call.parameters['hash']!, visit.who.account)
  return problem === undefined ? { redirect: '/people?withdrawn=yes' } : peoplePage(visit, [problem])
}

/** Answers for an account that a colleague has removed, or the same form sent before, or that never was. */
async function gonePage(visit: MemberVisit): Promise<Outcome> {
  const email = visit.form.get('email')
  if (email === null) return notFoundPage(visit)
  const { isOwn, words } = await visit.accounts.lastDone('account.removed', email, visit.who.account)
  if (isOwn) return { redirect: '/people?removed=yes' }
  const message = `Nothing was changed: the account of ${email} was removed already${words}.`
  return peoplePage(visit, [new FieldProblem('', message)])
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
      ${form(visit, { action: `/people/${person.id}`, submit: 'Save', fields: html`${hidden('email', person.email)}${hidden('shown', person.role)}${role}` })}
      ${
        person.id !== visit.who.account.id &&
        html`<h2>Forgotten password</h2>
          <p>You pass the link on yourself. All sessions of the account end when it is used.</p>
          ${form(visit, { action: `/people/${person.id}/link`, submit: html`<button class="button">Make a link for a new password</button>`, fields: hidden('email', person.email) })}`
      }
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
  if (problem !== undefined)
    return personPage(visit, (await visit.store.accounts.accountById(person.id)) ?? person, [problem])
  const said = role === visit.form.get('shown') ? '' : '?changed=yes'
  // Managers who give up their role may no longer open the page of a person.
  return { redirect: person.id === account.id ? '/account' : `/people/${person.id}${said}` }
}

function confirmPage(visit: MemberVisit, person: Account, problems: Problems = []): Outcome {
  // Asks for the password.
  if (person.id === visit.who.account.id) return { redirect: '/account/delete' }
  return formPage(visit, {
    title: 'Remove an account',
    heading: html`Remove ${isolated(person.email)}?`,
    section: 'people',
    problems,
    refusedAs: 409,
    above: html`<p>${roleWords(person)}. Their keys and sessions end at once, for good. What they did stays in the histories, by “A deleted account”.</p>`,
    action: `/people/${person.id}/remove`,
    submit: 'Remove account',
    danger: true,
    cancel: `/people/${person.id}`,
    fields: html`${hidden('email', person.email)}${hidden('shown', person.role)}`,
  })
}

async function remove(visit: MemberVisit, person: Account): Promise<Outcome> {
  if (person.id === visit.who.account.id) return confirmPage(visit, person)
  const problem = await visit.accounts.remove(asShown(visit, person), 'console', visit.who.account)
  if (problem instanceof NoAccount) return gonePage(visit)
  return problem === undefined ? { redirect: '/people?removed=yes' } : confirmPage(visit, person, [problem])
}

/** Answers the form itself, without a redirect, so that no address, reload or cache can show the link again. */
async function newLinkPage(visit: MemberVisit, person?: Account): Promise<Outcome> {
  const token = await visit.accounts.makeLink(visit.who.account, person)
  // A colleague has removed the person, or has made the visitor a member, or the person is the visitor.
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

// The pages of people, for managers: who has an account, invitations, roles, links for a new password, and removal.
import { newNameProblem, NoAccount } from '../../accounts/account-problems.ts'
import { ROLE_WORDS, roleWords } from '../../accounts/roles.ts'
import { FieldProblem } from '../../contract/errors.ts'
import { BASE_PATH } from '../../contract/operations.ts'
import type { Account, Role } from '../../store/account-store.ts'
import { type Invited, isPerson, type Link, LINK_DAYS, nameOf } from '../../store/people-store.ts'
import { html, type Html, isolated, withVisibleControls } from '../../http/html/html.ts'
import { about, formPage } from '../every-page/form-page.ts'
import { choice, field, form, hidden, type Problems, problemSummary, secretField } from '../every-page/forms.ts'
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
  forManagers('GET', '/people/new', (visit) => invitePage(visit)),
  forManagers('POST', '/people/new', invite, { keepsTyped: true }),
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
        <a class="button primary" href="/people/new">Invite</a></div></div>
      ${problemSummary(problems)}
      ${query.has('removed') && html`<p class="notice good" role="status">The account was removed, with its keys.</p>`}
      ${query.has('withdrawn') && html`<p class="notice good" role="status">Cancelled: the link does not work any more.</p>`}
      <table class="table keys">
        <caption class="visually-hidden">People, newest first</caption>
        <thead><tr><th scope="col">Name</th><th scope="col">Role</th><th scope="col">Since</th><th scope="col">Last seen</th></tr></thead>
        <tbody>${people.map(
          (person) => html`<tr><th scope="row"><a href="/people/${person.id}">${isolated(nameOf(person))}</a>
              ${person.name !== undefined && html`<div class="quiet-text">${isolated(person.email)}</div>`}</th>
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
  const row = ({ hash, madeBy, account, name, role, expiresAt }: Link) => {
    const invited = html`Invitation${name && html` for ${isolated(name)}`}${role && ` (${roleWords({ role })})`}`
    const kind = account === undefined ? invited : html`New password for ${isolated(nameOf(account))}`
    const words = account === undefined ? 'Cancel invitation' : 'Cancel link'
    const submit = html`<button class="button quiet danger-outline">${words}<span class="visually-hidden">: ${kind}, made by ${madeBy}</span></button>`
    return html`<tr><th scope="row">${kind}</th><td data-label="Made by">${isolated(madeBy)}</td>
      <td data-label="Until">${localDay(expiresAt)}</td><td class="key-actions">${form(visit, { action: `/people/links/${hash}`, submit })}</td></tr>`
  }
  return (
    links.length > 0 &&
    html`<section aria-labelledby="links"><h2 id="links">Not used yet</h2>
      <table class="table keys">
        <caption class="visually-hidden">Links that nobody has used, newest first</caption>
        <thead><tr><th scope="col">Link</th><th scope="col">Made by</th><th scope="col">Works until</th>
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

const ROLE_HINT = 'Managers invite and remove people, and remove animals.'
const KEYLESS_HINT = ' Keys of a member who becomes one without keys are revoked at once, for good.'

const NO_SUCH_ROLE = new FieldProblem('role', 'Choose one of the listed roles')

function personPage(visit: MemberVisit, person: Account, problems: Problems = []): HtmlPage {
  // A role of a newer program can be kept.
  const options = Object.entries({ ...ROLE_WORDS, [person.role]: roleWords(person) })
  const hint = ROLE_HINT + KEYLESS_HINT
  const role = choice({ name: 'role', label: 'Role', value: person.role, options, hint, problems })
  return {
    title: withVisibleControls(nameOf(person)),
    section: 'people',
    ...(problems.length > 0 && { status: 409 }),
    body: html`<div class="narrow"><p class="back"><a href="/people">← People</a></p>
      <h1>${isolated(nameOf(person))}</h1>
      ${visit.query.has('changed') && html`<p class="notice good" role="status">Saved.</p>`}
      ${problemSummary(problems)}
      <p class="lead">${person.name !== undefined && html`${isolated(person.email)}. `}Account created on ${day(person.createdAt)}.</p>
      ${form(visit, { action: `/people/${person.id}`, submit: 'Save', fields: html`${hidden('email', person.email)}${hidden('shown', person.role)}${role}` })}
      ${
        person.id !== visit.who.account.id &&
        html`<h2>Forgotten password</h2>
          <p>You send the link yourself. When it is used, they are signed out everywhere.</p>
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
      : NO_SUCH_ROLE
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
    heading: html`Remove ${isolated(nameOf(person))}?`,
    section: 'people',
    problems,
    refusedAs: 409,
    above: html`<p>${roleWords(person)}. Their keys and sessions end at once, for good. What they did stays in the history, by
      “${person.name === undefined ? 'A deleted account' : html`${isolated(person.name)} (left)`}”.</p>`,
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

function invitePage(visit: MemberVisit, problems: Problems = []): HtmlPage {
  const typed = (name: string) => visit.form.get(name) ?? ''
  const options = Object.entries(ROLE_WORDS)
  return formPage(visit, {
    title: 'Invite a person',
    section: 'people',
    problems,
    action: '/people/new',
    submit: 'Make the link',
    cancel: '/people',
    fields: html`${field({ name: 'name', label: 'Name', hint: 'They can correct it.', value: typed('name'), problems, focus: true })}
      ${choice({ name: 'role', label: 'Role', hint: ROLE_HINT, value: typed('role') || 'member', options, problems })}`,
  })
}

async function invite(visit: MemberVisit): Promise<Outcome> {
  const [name, role] = [visit.form.get('name')?.trim() ?? '', visit.form.get('role') as Role]
  const problem = Object.hasOwn(ROLE_WORDS, role) ? await newNameProblem(visit.store.accounts, name) : NO_SUCH_ROLE
  return problem === undefined ? newLinkPage(visit, { name, role }) : invitePage(visit, [problem])
}

/** Answers the form itself, without a redirect, so that no address or cache can show the link again. */
async function newLinkPage(visit: MemberVisit, to: Account | Invited): Promise<Outcome> {
  const token = await visit.accounts.makeLink(visit.who.account, to)
  // A colleague has removed the person, or has made the visitor a member, or the person is the visitor.
  if (token === undefined) return { redirect: '/people' }
  const console = baseAddress(visit).slice(0, -BASE_PATH.length)
  const [title, name] = 'email' in to ? ['New password', nameOf(to)] : ['Invitation link', to.name]
  return {
    title,
    section: 'people',
    body: html`<h1>${title} for ${isolated(name)}</h1>
      <p class="notice good" role="status"><strong>Send it privately</strong>: whoever opens the link first can use it. It is shown only here,
      works once, and for ${LINK_DAYS} days.</p>
      ${secretField('Link', console + linkAddress(token))}
      ${console.includes('//HOST') && html`<p>Replace <code>HOST</code> by the name in the address bar of this page.</p>`}
      <p class="actions"><a class="button primary" href="/people">Done</a></p>`,
  }
}

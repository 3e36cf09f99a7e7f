// The pages of people, for managers: who has an account, and what a manager can do about it. Each action has a page that confirms it,
// and is taken only while the person still has the role that the page showed.
import { LINK_DAYS, roleWords } from '../accounts/accounts.ts'
import { entryOf } from '../contract/entry-of.ts'
import { FieldProblem } from '../contract/errors.ts'
import { BASE_PATH } from '../contract/operations.ts'
import type { Account, Role } from '../store/account-store.ts'
import { html, type Html, isolated } from '../http/html.ts'
import { form, hidden, type Problems, problemSummary, secretField } from './forms.ts'
import { paging } from './paging.ts'
import { linkAddress } from './link.ts'
import { MANAGERS_ONLY_PAGE, notFoundPage } from './problem-pages.ts'
import { ago, day } from './times.ts'
import { baseAddress, type ConsoleRoute, forManagers, type HtmlPage, type MemberVisit, type Outcome } from './visit.ts'

const PEOPLE_SHOWN = 20

export const peopleRoutes: readonly ConsoleRoute[] = [
  forManagers('GET', '/people', peoplePage),
  forManagers('POST', '/people', (visit) => newLinkPage(visit)),
  forManagers(
    'GET',
    '/people/{id}',
    withPerson((visit, person) => personPage(visit, person)),
  ),
  forManagers('GET', '/people/{id}/{action}', withPerson(confirm)),
  forManagers('POST', '/people/{id}/{action}', withPerson(act)),
]

interface Action {
  words: string
  /** What it means for the person. */
  meaning: string
  /** The roles that it is for; without it, for all. */
  from?: readonly Role[]
  /** The role afterwards. */
  to?: Role
  danger?: boolean
}

const ACTIONS: Record<'manager' | 'member' | 'no-keys' | 'keys' | 'password' | 'remove', Action> = {
  manager: {
    words: 'Make a manager',
    meaning: 'Managers invite and remove people, and remove animals. They may have keys.',
    from: ['member', 'keyless'],
    to: 'manager',
  },
  member: {
    words: 'Make a member',
    meaning: 'Links that they made stop working. If this is you, you no longer see these pages.',
    from: ['manager'],
    to: 'member',
  },
  'no-keys': {
    words: 'Take the right to keys away',
    meaning: 'Their keys are revoked at once, and they can generate no others.',
    from: ['member'],
    to: 'keyless',
    danger: true,
  },
  keys: {
    words: 'Give the right to keys back',
    meaning: 'They can generate keys again. Revoked ones stay revoked.',
    from: ['keyless'],
    to: 'member',
  },
  password: {
    words: 'Make a link for a new password',
    meaning: 'You pass it on yourself. When it is used, all their sessions end.',
  },
  remove: {
    words: 'Remove the account',
    meaning:
      'Their keys and sessions end at once, for good. What they did stays in the histories, by “A deleted account”.',
    danger: true,
  },
}

const actionsFor = ({ role }: Account) => Object.entries(ACTIONS).filter(([, { from }]) => from?.includes(role) ?? true)

async function peoplePage(visit: MemberVisit): Promise<HtmlPage> {
  const { store, query, now } = visit
  const after = await store.accounts.accountById(query.get('after') ?? '')
  const found = await store.accounts.pageOfPeople({ after, limit: PEOPLE_SHOWN + 1 })
  const people = found.slice(0, PEOPLE_SHOWN)
  const older = found.length > people.length ? `/people?after=${people.at(-1)!.id}` : undefined
  const pages = paging({ newest: after && '/people', older })
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
            <td data-label="Last seen">${person.lastSeenAt === null ? 'Never' : ago(person.lastSeenAt, now)}</td></tr>`,
        )}</tbody>
      </table>${pages}`,
  }
}

/** Looks up the person that the address names. */
function withPerson(handle: (visit: MemberVisit, person: Account) => Outcome | Promise<Outcome>) {
  return async (visit: MemberVisit): Promise<Outcome> => {
    const person = await visit.store.accounts.accountById(visit.call.parameters['id']!)
    return person === undefined ? notFoundPage(visit) : handle(visit, person)
  }
}

function personPage({ query }: MemberVisit, person: Account): HtmlPage {
  return {
    title: person.email,
    section: 'people',
    body: html`<div class="narrow"><p class="back"><a href="/people">← People</a></p>
      <h1>${isolated(person.email)}</h1>
      ${query.has('changed') && html`<p class="notice good" role="status">Saved.</p>`}
      <p class="lead">${roleWords(person)}. Account created on ${day(person.createdAt)}.</p>
      ${actionsFor(person).map(
        ([name, { words, danger }]) =>
          html`<p><a class="button ${danger && 'danger-outline'}" href="/people/${person.id}/${name}">${words}…</a></p>`,
      )}</div>`,
  }
}

/** Returns the action that the address names, if it is for this person now. */
function actionOf({ call }: MemberVisit, person: Account): Action | undefined {
  const name = call.parameters['action']!
  return actionsFor(person).some(([each]) => each === name) ? entryOf(ACTIONS, name) : undefined
}

function confirm(visit: MemberVisit, person: Account, problems: Problems = []): Outcome {
  const action = actionOf(visit, person)
  if (action === undefined) return { redirect: `/people/${person.id}` }
  // Asks for the password.
  if (action === ACTIONS.remove && person.id === visit.who.account.id) return { redirect: '/account/delete' }
  const { words, meaning, danger = false } = action
  return {
    title: words,
    section: 'people',
    ...(problems.length > 0 && { status: 409 }),
    body: html`<div class="narrow">
      <h1>${words}?</h1>
      ${problemSummary(problems)}
      <p><strong>${isolated(person.email)}</strong> (${roleWords(person)}): ${meaning}</p>
      ${form(visit, {
        action: `/people/${person.id}/${visit.call.parameters['action']}`,
        submit: words,
        danger,
        cancel: `/people/${person.id}`,
        fields: hidden('shown', person.role),
      })}
    </div>`,
  }
}

async function act(visit: MemberVisit, person: Account): Promise<Outcome> {
  const { accounts, who, form: sent } = visit
  const action = actionOf(visit, person)
  const isSelf = person.id === who.account.id
  if (sent.get('shown') !== person.role) {
    const problem = new FieldProblem('', `Nothing was changed: meanwhile the role became ${roleWords(person)}.`)
    return confirm(visit, person, [problem])
  }
  if (action === undefined || (action === ACTIONS.remove && isSelf)) return confirm(visit, person)
  if (action === ACTIONS.password) return newLinkPage(visit, person)
  const problem = action.to
    ? await accounts.setRole(person, action.to, 'console', who.account)
    : await accounts.remove(person, 'console', who.account)
  if (problem !== undefined) return confirm(visit, person, [problem])
  if (!action.to) return { redirect: '/people?removed=yes' }
  return { redirect: isSelf ? '/account' : `/people/${person.id}?changed=yes` }
}

/** Answers the form itself, without a redirect, so that no address, reload or cache can show the link again. */
async function newLinkPage(visit: MemberVisit, person?: Account): Promise<Outcome> {
  const token = await visit.accounts.makeLink(visit.who.account, person)
  if (token === undefined) return MANAGERS_ONLY_PAGE
  const console = baseAddress(visit).slice(0, -BASE_PATH.length)
  const whom: Html | string = person === undefined ? 'somebody' : isolated(person.email)
  return {
    title: person === undefined ? 'Invitation' : 'Link for a new password',
    section: 'people',
    body: html`<h1>A link for ${whom}</h1>
      <p class="notice good" role="status">It is shown only once, works once, and for ${LINK_DAYS} days. Pass it on yourself, over a way
      that only the recipient reads: whoever opens it ${person === undefined ? 'can create an account' : 'can set the password'}.</p>
      ${secretField('Link', console + linkAddress(token))}
      ${console.includes('//HOST') && html`<p>Replace <code>HOST</code> by the name in the address bar of this page.</p>`}
      <p class="actions"><a class="button primary" href="/people">I’ve passed it on</a></p>`,
  }
}

// A browser without a screen for HTTP tests: keeps cookies, reads forms, follows nothing by itself.
import assert from 'node:assert/strict'
import type { MadeKey } from '../../../src/accounts/accounts.ts'
import { ROUTES } from '../../../src/console/console.ts'
import { labelOf, SHOWN_FIELDS } from '../../../src/contract/pet-words.ts'
import { Problem } from '../../../src/contract/errors.ts'
import type { FieldName } from '../../../src/contract/pets.ts'
import { makeAccount, PASSWORD, type Petstore } from '../harness.ts'

/** The addresses that show no page, or one that needs a link or a manager. */
const OTHERS = new Set([
  '/animals/many',
  '/account/password',
  '/sign-out',
  '/link',
  '/people',
  '/people/new',
  '/people/keys',
])
const pagesFor = (whom: 'public' | 'session') =>
  ROUTES.flatMap(({ method, access, path }) =>
    method === 'GET' && access === whom && !/[{.]/.test(path) && !OTHERS.has(path) ? [path] : [],
  )

/** Every page for anyone whose address names nothing. */
export const OPEN_PAGES = pagesFor('public')

/** Where something of an account is shown: every such page. */
export const MEMBER_PAGES = pagesFor('session')

export interface Answered {
  status: number
  headers: Headers
  body: string
  /** Where a redirect leads. */
  location: string | null
}

export class ConsoleClient {
  readonly #url: string
  readonly cookies = new Map<string, string>()

  constructor(url: string) {
    this.#url = url
  }

  /** The value of the Cookie header, as the browser would send it. */
  get cookie(): string {
    return [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  }

  async get(path: string, headers: Record<string, string> = {}): Promise<Answered> {
    return this.#send(path, { headers })
  }

  /** Sends what is given and nothing else: no CSRF token, unless it is among the fields. */
  async post(path: string, fields: Record<string, string>, headers: Record<string, string> = {}): Promise<Answered> {
    return this.#send(path, { method: 'POST', body: new URLSearchParams(fields), headers })
  }

  /** The same with fields of which some have one name. */
  async postAll(path: string, fields: string[][]): Promise<Answered> {
    return this.#send(path, { method: 'POST', body: new URLSearchParams(fields), headers: {} })
  }

  /** Sends a form with a file, and the fields in this order before it. */
  async postFile(
    path: string,
    fields: Record<string, string>,
    content: string | Buffer,
    name: string,
  ): Promise<Answered> {
    const body = new FormData()
    for (const [field, value] of Object.entries(fields)) body.append(field, value)
    body.append('file', new Blob([content as Uint8Array<ArrayBuffer>]), name)
    return this.#send(path, { method: 'POST', body, headers: {} })
  }

  /** Opens a page, fills in its form that goes to `action`, and sends that with all its hidden fields. */
  async submit(page: string, action: string, fields: Record<string, string> = {}): Promise<Answered> {
    return this.post(action, { ...(await this.hiddenFields(page, action)), ...fields })
  }

  /** The same for a form that goes to the address of its page. */
  async fillIn(page: string, fields: Record<string, string> = {}): Promise<Answered> {
    return this.submit(page, page, fields)
  }

  /** The hidden fields of a form, and what its first button for `action` sends, which may stand behind the form. */
  async hiddenFields(page: string, action = page): Promise<Record<string, string>> {
    const { body } = await this.get(page)
    const form = body.split('<form').find((part) => part.includes(`action="${action}"`))
    assert.ok(form, `${page} has no form for ${action}`)
    const [own = ''] = form.split('</form>')
    const buttons = form.match(/<button[^>]*>/g)?.filter((each) => each.includes(`formaction="${action}"`))
    const button = buttons?.[0] ?? /<button[^>]*>/.exec(own)?.[0] ?? ''
    const [, name, value] = /name="(\w+)" value="([^"]*)"/.exec(button) ?? []
    return { ...hiddenIn(own), ...(name !== undefined && { [name]: value! }) }
  }

  /** Presses Later where a name is asked for. `page` is the address of the form, if another page has led to it. */
  async signIn(email: string, password: string, page = '/sign-in'): Promise<Answered> {
    const answer = await this.submit(page, '/sign-in', { email, password })
    const [, next] = answer.location?.split('/account/name?next=') ?? []
    return next === undefined ? answer : { ...answer, location: decodeURIComponent(next) }
  }

  /** Generates a key on the page of keys; resolves with the page that shows it, and its secret. */
  async generateKey(name: string, expires = ''): Promise<Answered & { secret: string }> {
    const shown = await this.submit('/keys/new', '/keys', { name, expires })
    const [secret] = /pets_test_[0-9A-Za-z]{36}/.exec(shown.body) ?? []
    assert.ok(secret, shown.body)
    return { ...shown, secret }
  }

  async #send(path: string, init: RequestInit & { headers: Record<string, string> }): Promise<Answered> {
    const headers = { Accept: 'text/html', ...(this.cookie && { Cookie: this.cookie }), ...init.headers }
    const response = await fetch(this.#url + path, { ...init, headers, redirect: 'manual' })
    for (const line of response.headers.getSetCookie()) this.#keep(line)
    return {
      status: response.status,
      headers: response.headers,
      body: await response.text(),
      location: response.headers.get('location'),
    }
  }

  #keep(line: string): void {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
    if (/Max-Age=0/.test(line)) this.cookies.delete(name)
    else this.cookies.set(name, value)
  }
}

/** The hidden fields of a page, or of a part of it, with line breaks as a browser sends them. */
export function hiddenIn(body: string): Record<string, string> {
  const inputs = body.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)">/g)
  return Object.fromEntries(
    [...inputs].map(([, name, value]) => [name, unescaped(value!).replaceAll(/\r?\n|\r/g, '\r\n')]),
  )
}

export function unescaped(text: string): string {
  return text
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')
}

/** What is wrong with the fields of a form, as the page says it beside each of them. */
/** What a person reads, with TIME for each time. */
export function wordsOf(body: string): string {
  return unescaped(body.replaceAll(/<time.*?<\/time>/g, 'TIME').replaceAll(/<[^>]*>/g, ''))
}

/** The words for an animal that has only these fields, in the order of the console: each after its label, as in the history, or alone. */
export function inWords(
  words: Partial<Record<FieldName, string>>,
  labels: 'with labels' | 'alone' = 'with labels',
): string {
  const shown = SHOWN_FIELDS.map((name) => (labels === 'alone' ? '' : `${labelOf(name)}: `) + (words[name] ?? '–'))
  return shown.join(labels === 'alone' ? ' ' : '; ')
}

export function problemsIn(body: string): string[] {
  return [...body.matchAll(/<p class="problem" id="\w+-problem">([^<]*)<\/p>/g)].map(([, text]) => unescaped(text!))
}

/** For `call`: a request with another key than the service's own. */
export function withKey(secret: string): RequestInit {
  return { headers: { Authorization: `Bearer ${secret}` } }
}

/** Another key of the service's own account. */
export async function createKey({ accounts, account }: Petstore, name: string, expiresAt?: number): Promise<MadeKey> {
  const made = await accounts.createKey(account, name, expiresAt, 'console')
  assert.ok(!(made instanceof Problem))
  return made
}

/** Somebody who is signed in to the service's own account. */
export async function signedIn(petstore: Petstore): Promise<ConsoleClient> {
  const client = new ConsoleClient(petstore.url)
  const { status, location } = await client.signIn(petstore.account.email, PASSWORD)
  assert.deepEqual([status, location], [303, '/animals'])
  return client
}

/** The same, as a manager. */
export async function signedInManager(petstore: Petstore): Promise<ConsoleClient> {
  const { store, account } = petstore
  const [role, via] = ['manager', 'command line'] as const
  if ((await store.accounts.accountById(account.id))?.role !== role)
    assert.equal(await petstore.accounts.setRole(account, role, via), undefined)
  return signedIn(petstore)
}

/** Somebody who is signed in to another account, which is created for that. */
export async function signedInAs(petstore: Petstore, email: string): Promise<ConsoleClient> {
  await makeAccount(petstore, email)
  const client = new ConsoleClient(petstore.url)
  assert.equal((await client.signIn(email, PASSWORD)).status, 303)
  return client
}

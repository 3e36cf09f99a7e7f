// A browser without a screen for HTTP tests: keeps cookies, reads forms, follows nothing by itself.
import assert from 'node:assert/strict'
import { makeAccount, PASSWORD, type Petstore } from './harness.ts'

/** Where something of an account is shown. */
export const MEMBER_PAGES = ['/keys', '/animals', '/animals/new', '/activity', '/account', '/account/delete']

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

  /** Opens a page, fills in its form that goes to `action`, and sends that with all its hidden fields. */
  async submit(page: string, action: string, fields: Record<string, string> = {}): Promise<Answered> {
    return this.post(action, { ...(await this.hiddenFields(page, action)), ...fields })
  }

  async hiddenFields(page: string, action: string): Promise<Record<string, string>> {
    const { body } = await this.get(page)
    const form = body.split('<form').find((part) => part.includes(`action="${action}"`))
    assert.ok(form, `${page} has no form for ${action}`)
    return hiddenIn(form.split('</form>')[0]!)
  }

  async signIn(email: string, password: string): Promise<Answered> {
    return this.submit('/sign-in', '/sign-in', { email, password })
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

/** The hidden fields of a page, or of a part of it. */
export function hiddenIn(body: string): Record<string, string> {
  const inputs = body.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)">/g)
  return Object.fromEntries([...inputs].map(([, name, value]) => [name, unescaped(value!)]))
}

function unescaped(text: string): string {
  return text
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')
}

/** Somebody who is signed in to the service's own account. */
export async function signedIn(petstore: Petstore): Promise<ConsoleClient> {
  const client = new ConsoleClient(petstore.url)
  const { status, location } = await client.signIn(petstore.account.email, PASSWORD)
  assert.deepEqual([status, location], [303, '/keys'])
  return client
}

/** Somebody who is signed in to another account, which is created for that. */
export async function signedInAs(petstore: Petstore, email: string): Promise<ConsoleClient> {
  await makeAccount(petstore, email)
  const client = new ConsoleClient(petstore.url)
  assert.equal((await client.signIn(email, PASSWORD)).status, 303)
  return client
}

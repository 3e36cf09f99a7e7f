// The console's only cookie: a random token. It stands for a session if the store has one with its hash.
import { isToken } from '../accounts/sessions.ts'
import type { Call } from '../http/call.ts'

/** `__Host-` binds the cookie to this host and to https; plain http, as on loopback, can't use it. */
function cookieName(secure: boolean): string {
  return secure ? '__Host-petstore' : 'petstore'
}

/** Each is looked up in the store, so there must not be hundreds. */
const MOST_COOKIES = 10

/**
 * Returns the tokens of all cookies with our name and form. A browser sends several if another host of the domain, or a
 * page below another path, has set one too.
 */
export function readCookies({ raw }: Call, secure: boolean): string[] {
  const prefix = `${cookieName(secure)}=`
  const cookies = (raw.headers.cookie ?? '').split(';').map((cookie) => cookie.trim())
  const tokens = cookies.filter((cookie) => cookie.startsWith(prefix)).map((cookie) => cookie.slice(prefix.length))
  return [...new Set(tokens.filter(isToken))].slice(0, MOST_COOKIES)
}

/** The cookie lasts until the browser is closed; the store ends the session before that. */
export function cookieHeader(token: string, secure: boolean): string {
  return `${cookieName(secure)}=${token}; Path=/; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`
}

export function forgetCookieHeader(secure: boolean): string {
  return `${cookieHeader('', secure)}; Max-Age=0`
}

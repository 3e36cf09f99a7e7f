// The console's cookie: a random token. The visitor is signed in if the store has a session with the token's hash.
import { isToken } from '../accounts/sessions.ts'
import type { Call } from '../http/call.ts'

/** `__Host-` binds the cookie to this host and to https. Browsers refuse it on plain http, which loopback uses. */
function cookieName(secure: boolean): string {
  return secure ? '__Host-petstore' : 'petstore'
}

/** Bounds the look-ups in the store: each cookie is one. */
const MOST_COOKIES = 10

/**
 * Returns the tokens of all cookies with the console's name and a token's form. A browser sends several if another host of
 * the domain, or a page below another path, has set one too.
 */
export function readCookies({ request }: Call, secure: boolean): string[] {
  const prefix = `${cookieName(secure)}=`
  const cookies = (request.headers.cookie ?? '').split(';').map((cookie) => cookie.trim())
  const tokens = cookies.filter((cookie) => cookie.startsWith(prefix)).map((cookie) => cookie.slice(prefix.length))
  return [...new Set(tokens.filter(isToken))].slice(0, MOST_COOKIES)
}

/** The cookie lasts until the browser is closed. The session may end earlier (accounts/sessions.ts). */
export function cookieHeader(token: string, secure: boolean): string {
  return `${cookieName(secure)}=${token}; Path=/; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`
}

export function forgetCookieHeader(secure: boolean): string {
  return `${cookieHeader('', secure)}; Max-Age=0`
}

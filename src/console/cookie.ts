// The console's only cookie: a random token. It stands for a session if the store has one with its hash.
import type { FastifyRequest } from 'fastify'
import { isToken } from '../accounts/sessions.ts'

/** `__Host-` binds the cookie to this host and to https; plain http, as on loopback, can't use it. */
function cookieName(secure: boolean): string {
  return secure ? '__Host-petstore' : 'petstore'
}

/** Returns undefined if there is no cookie, or not one of ours. */
export function readCookie(request: FastifyRequest, secure: boolean): string | undefined {
  const prefix = `${cookieName(secure)}=`
  const cookies = (request.headers.cookie ?? '').split(';').map((cookie) => cookie.trim())
  const token = cookies.find((cookie) => cookie.startsWith(prefix))?.slice(prefix.length)
  return isToken(token) ? token : undefined
}

/** The cookie lasts until the browser is closed; the store ends the session before that. */
export function cookieHeader(token: string, secure: boolean): string {
  return `${cookieName(secure)}=${token}; Path=/; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`
}

export function forgetCookieHeader(secure: boolean): string {
  return `${cookieHeader('', secure)}; Max-Age=0`
}

// The one cookie of the console: a random token, which says who is signed in when the store knows it.
import type { FastifyRequest } from 'fastify'
import { isToken } from '../accounts/sessions.ts'

/** `__Host-` binds it to this host and to https; plain http, as on loopback, can't have that. */
function cookieName(secure: boolean): string {
  return secure ? '__Host-petstore' : 'petstore'
}

/** Undefined where none came, or nothing that we made. */
export function readCookie(request: FastifyRequest, secure: boolean): string | undefined {
  const prefix = `${cookieName(secure)}=`
  const cookies = (request.headers.cookie ?? '').split(';').map((cookie) => cookie.trim())
  const token = cookies.find((cookie) => cookie.startsWith(prefix))?.slice(prefix.length)
  return isToken(token) ? token : undefined
}

/** It ends with the browser at the latest; the store decides before that. */
export function cookieHeader(token: string, secure: boolean): string {
  return `${cookieName(secure)}=${token}; Path=/; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`
}

export function forgetCookieHeader(secure: boolean): string {
  return `${cookieHeader('', secure)}; Max-Age=0`
}

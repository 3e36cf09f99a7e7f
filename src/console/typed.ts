// Keeps what was typed into a form if the session has ended: the query parameter `typed` carries it past the sign-in, back
// to the form's page. It is signed with the token of the browser's cookie, so that no other site can fill in a form for a
// visitor. Forms with a password do not take part (`keepsTyped` in visit.ts).
import { createHmac } from 'node:crypto'
import { isEqualInConstantTime } from '../accounts/sessions.ts'
import { tokenFor, type Visit } from './visit.ts'

/** The most characters of the encoded fields: they are part of the address, and a request's headers are limited. */
const MAX_LENGTH = 6000

/** Returns the address of the form's page with what was typed; without it if it is too long. */
export function withTyped(visit: Visit): string {
  const typed = JSON.stringify([...visit.form].filter(([name]) => name !== 'csrf'))
  const [address, fields] = [visit.call.request.url!, Buffer.from(typed).toString('base64url')]
  return fields.length > MAX_LENGTH ? address : signed(address, fields, tokenFor(visit))
}

/** Returns what was typed; undefined if the address has none, or it was not signed for this browser and this page. */
export function readTyped({ call: { request }, query, token }: Visit): URLSearchParams | undefined {
  const fields = fieldsOf(request.url!, query, token)
  if (fields === undefined) return undefined
  return new URLSearchParams(JSON.parse(Buffer.from(fields, 'base64url').toString()) as [string, string][])
}

/** Signs an address with the token of the new session. Leaves out what was typed if the old token did not sign it. */
export function signAgain(address: string, old: string | undefined, token: string): string {
  const [path = '', search] = address.split('?', 2)
  const query = new URLSearchParams(search)
  if (!query.has('typed')) return address
  const fields = fieldsOf(address, query, old)
  query.delete('typed')
  const plain = query.size === 0 ? path : `${path}?${query.toString()}`
  return fields === undefined ? plain : signed(plain, fields, token)
}

function signed(address: string, fields: string, token: string): string {
  return `${address}${address.includes('?') ? '&' : '?'}typed=${fields}.${signature(address, fields, token)}`
}

/** Returns the encoded fields if their signature is right. */
function fieldsOf(address: string, query: URLSearchParams, token: string | undefined): string | undefined {
  const [fields = '', given = ''] = query.get('typed')?.split('.') ?? []
  if (fields === '' || token === undefined) return undefined
  return isEqualInConstantTime(signature(address, fields, token), given) ? fields : undefined
}

/** Signs the fields for one page only: the path is part of the signed text. */
function signature(address: string, fields: string, token: string): string {
  return createHmac('sha256', token)
    .update(`typed ${address.split('?', 1)[0]} ${fields}`)
    .digest('base64url')
}

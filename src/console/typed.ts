// What was typed into a form whose session had ended: it travels in the address, past the sign-in, back to the form's page, signed
// with the browser's own token, so that nobody else can fill in a form for a visitor. No form with a password takes part.
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Visit } from './visit.ts'

/** Longer texts would not fit into the headers of a request beside everything else. */
const LONGEST = 6000

/** Returns the address of the form's page with what was typed. */
export function withTyped(address: string, typed: URLSearchParams, token: string): string {
  const fields = Buffer.from(JSON.stringify([...typed].filter(([name]) => name !== 'csrf'))).toString('base64url')
  return fields.length > LONGEST ? address : signed(address, fields, token)
}

/** Returns what was typed if this browser, and no other site, has brought it to this page. */
export function readTyped({ call: { raw }, query, token }: Visit): URLSearchParams | undefined {
  const fields = fieldsOf(raw.url!, query, token)
  if (fields === undefined) return undefined
  return new URLSearchParams(JSON.parse(Buffer.from(fields, 'base64url').toString()) as [string, string][])
}

/** Returns the address for the token of the new session; what was not signed with the old one is left out. */
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

function fieldsOf(address: string, query: URLSearchParams, token: string | undefined): string | undefined {
  const [fields = '', given = ''] = query.get('typed')?.split('.') ?? []
  if (fields === '' || token === undefined) return undefined
  const [expected, actual] = [Buffer.from(signature(address, fields, token)), Buffer.from(given)]
  return expected.length === actual.length && timingSafeEqual(expected, actual) ? fields : undefined
}

/** Binds the fields to the page of the form. */
function signature(address: string, fields: string, token: string): string {
  return createHmac('sha256', token)
    .update(`typed ${address.split('?', 1)[0]} ${fields}`)
    .digest('base64url')
}

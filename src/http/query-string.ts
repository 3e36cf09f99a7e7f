// Query strings as they were sent: every parameter, and what cannot be decoded is kept as it is.
import { parse } from 'node:querystring'
import type { RawQuery } from '../contract/list-query.ts'

/** By default Node would read only the first thousand parameters. */
const FORM = { maxKeys: 0, decodeURIComponent: decodeOrKeep }

export function parseQueryString(query: string): RawQuery {
  return parse(query, '&', '=', FORM)
}

function decodeOrKeep(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

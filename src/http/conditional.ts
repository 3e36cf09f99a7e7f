// Conditional requests: a strong ETag made from the content, and 304 if the client has it already.
import { hash } from 'node:crypto'

export function etagOf(body: string | Buffer): string {
  return `"${hash('sha256', body, 'base64url').slice(0, 22)}"`
}

/** If-None-Match compares weakly (RFC 9110, 13.1.2); `*` matches whatever is there. */
export function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  if (ifNoneMatch === etag || ifNoneMatch.trim() === '*') return true
  return ifNoneMatch.split(',').some((candidate) => candidate.trim().replace(/^W\//, '') === etag)
}

// Conditional requests: a strong ETag made from the content, and 304 for who has it already.
import { hash } from 'node:crypto'
import type { Answer, Call } from './call.ts'
import type { Page } from './page-cache.ts'

export function etagOf(body: string | Buffer): string {
  return `"${hash('sha256', body, 'base64url').slice(0, 22)}"`
}

/** If-None-Match compares weakly (RFC 9110, 13.1.2); `*` matches whatever is there. */
export function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  if (ifNoneMatch === etag || ifNoneMatch.trim() === '*') return true
  return ifNoneMatch.split(',').some((candidate) => candidate.trim().replace(/^W\//, '') === etag)
}

/** The page, or 304 for a client that has it. */
export function unlessKnown({ raw }: Call, { body, etag, headers, contentHeaders }: Page): Answer {
  if (matchesEtag(raw.headers['if-none-match'], etag)) return { status: 304, headers, body: undefined }
  return { status: 200, headers: contentHeaders, body }
}

// Caches the rendered answers of reads by URL, until the store's version changes. Answers 304 to conditional requests.
import { hash } from 'node:crypto'
import { Refusal } from '../../contract/errors.ts'
import type { Store } from '../../store/store.ts'
import { jsonContent } from './content.ts'
import type { Answer, Bytes, Call, Handler, Route } from '../call/call.ts'

export interface CachedAnswer {
  /** Undefined for an answer that is no operation's. */
  route: Route | undefined
  body: Bytes
  etag: string
  /** ETag and Link: the headers that a 304 has too. */
  headers: readonly string[]
  /** All headers that describe the content. */
  contentHeaders: readonly string[]
}

type Reading = Promise<CachedAnswer | Refusal>

/** Reads the store for a route and renders the result. */
export type Read = (route: Route) => Reading

export function rendered(route: Route | undefined, json: string, own: readonly string[] = []): CachedAnswer {
  const etag = etagOf(json)
  const headers = ['ETag', etag, ...own]
  const content = jsonContent(json)
  return { route, body: content.body, etag, headers, contentHeaders: [...content.headers, ...headers] }
}

/** Creates the handler of an operation that only reads. It answers through the cache, with 304 if the client has the current content. */
export function cachedRead(cache: AnswerCache, read: Read): Handler {
  return async (call) => {
    const answer = await cache.readThrough(call.request.url!, () => read(call.route))
    return answer instanceof Refusal ? answer : answerOrNotModified(call, answer)
  }
}

/** Returns the cached answer, or 304 if the request's If-None-Match matches it. */
export function answerOrNotModified({ request }: Call, { body, etag, headers, contentHeaders }: CachedAnswer): Answer {
  if (matchesEtag(request.headers['if-none-match'], etag)) return { status: 304, headers, body: undefined }
  return { status: 200, headers: contentHeaders, body }
}

/** Returns a strong ETag, made from the content. */
export function etagOf(body: string): string {
  return `"${hash('sha256', body, 'base64url').slice(0, 22)}"`
}

/** Compares an If-None-Match header weakly (RFC 9110, 13.1.2); `*` matches any ETag. */
export function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  if (ifNoneMatch === etag || ifNoneMatch.trim() === '*') return true
  return ifNoneMatch.split(',').some((candidate) => candidate.trim().replace(/^W\//, '') === etag)
}

const MAX_ANSWERS = 1024
const MAX_BYTES = 8 * 1024 * 1024
const MAX_URL_LENGTH = 200

export class AnswerCache {
  /** Counts the reads whose answer was cached, and those whose answer was not. Requests refused before the read are neither. */
  readonly lookups = { hits: 0, misses: 0 }
  readonly #store: Pick<Store, 'version' | 'versionAfterSync'>
  readonly #answers = new Map<string, CachedAnswer>()
  /** Running reads, by URL. */
  readonly #reading = new Map<string, Reading>()
  /** URLs that were requested before, under any version of the store. */
  readonly #requested = new Set<string>()
  #bytes = 0
  #version: number | undefined
  /** Whether the version has been read for the requests that are served together with the current one (client-connections.ts). */
  #isCurrent = false

  constructor(store: Pick<Store, 'version' | 'versionAfterSync'>) {
    this.#store = store
  }

  /** Drops all answers if the store has a new version, so that requests that have arrived by now get no older answer. */
  refresh(): void {
    const version = this.#store.version()
    if (version !== undefined && version === this.#version) return
    this.#version = version
    this.#answers.clear()
    this.#reading.clear()
    this.#bytes = 0
  }

  /** Finds the answer for a request that has just arrived. Reads the store's version once for all that are served together. */
  find(url: string): CachedAnswer | undefined {
    if (!this.#isCurrent) {
      this.refresh()
      this.#isCurrent = true
      queueMicrotask(() => (this.#isCurrent = false))
    }
    return this.#answers.get(url)
  }

  /**
   * Reads an answer that is not cached, after `find` or `refresh`. If the URL was requested
   * before, one read serves all requests that arrive while it runs, and its answer is cached; if the store has no
   * version, one read serves only the requests that arrived before it began. The first answer of a URL is not
   * cached: a client that pages through a list requests each page once, and collecting the garbage of such a cache
   * would take a third of the time of the request.
   */
  readThrough(url: string, load: () => Reading): Reading {
    this.lookups.misses += 1
    if (this.#isNew(url)) return load()
    return this.#reading.get(url) ?? this.#loadAndKeep(url, load)
  }

  #isNew(url: string): boolean {
    if (this.#requested.has(url)) return false
    if (this.#requested.size >= MAX_ANSWERS) this.#requested.clear()
    if (url.length <= MAX_URL_LENGTH) this.#requested.add(url)
    return true
  }

  async #loadAndKeep(url: string, load: () => Reading): Reading {
    const version = this.#store.versionAfterSync()
    const reading = load()
    this.#reading.set(url, reading)
    try {
      const answer = await reading
      // The store may only now have reached the version that was read.
      if (version !== undefined) this.refresh()
      const isCurrent = version !== undefined && version === this.#version
      if (isCurrent && !(answer instanceof Refusal)) this.#keep(url, answer)
      return answer
    } finally {
      if (this.#reading.get(url) === reading) this.#reading.delete(url)
    }
  }

  #keep(url: string, answer: CachedAnswer): void {
    if (this.#answers.has(url)) return
    this.#answers.set(url, answer)
    this.#bytes += sizeOf(url, answer)
    while (this.#answers.size > MAX_ANSWERS || this.#bytes > MAX_BYTES) {
      const [oldest, dropped] = this.#answers.entries().next().value!
      this.#answers.delete(oldest)
      this.#bytes -= sizeOf(oldest, dropped)
    }
  }
}

function sizeOf(url: string, answer: CachedAnswer): number {
  return url.length + answer.body.length
}

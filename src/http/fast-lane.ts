// The short way: what is in the page cache is answered without the router. The same steps, the same way out; whatever
// else comes takes the long way (app.ts), which also fills the cache.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Refusal } from '../contract/errors.ts'
import type { Log } from '../log.ts'
import type { ApiKey } from '../store/store.ts'
import type { Admit } from './admission.ts'
import type { Call, Send } from './call.ts'
import { unlessKnown } from './conditional.ts'
import { refusalFor } from './failures.ts'
import { checkFraming } from './framing.ts'
import type { Page, PageCache } from './page-cache.ts'
import { requestId } from './request-id.ts'

export interface LaneParts {
  pages: PageCache
  admit: Admit
  send: Send
  log: Log
  clientAddress: (raw: IncomingMessage) => string
}

/** True where it has taken the request. */
export function createFastLane({ pages, admit, send, log, clientAddress }: LaneParts) {
  return (raw: IncomingMessage, response: ServerResponse): boolean => {
    const { method, headers } = raw
    if (method !== 'GET' || headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined) return false
    const version = pages.versionOnArrival()
    const page = pages.find(raw.url!, version)
    if (page === undefined) return false
    const call = new LaneCall(raw, page, version, clientAddress)
    const answer = (refusal: Refusal | undefined) => send(call, response, refusal ?? unlessKnown(call, page))
    const fail = (error: unknown) => send(call, response, refusalFor(error, call, log))
    try {
      const refusal = checkFraming(call)
      if (refusal === undefined) admit(call, answer, fail)
      else answer(refusal)
    } catch (error) {
      fail(error)
    }
    return true
  }
}

class LaneCall implements Call {
  readonly id: string
  readonly raw: IncomingMessage
  readonly version: number | undefined
  readonly operation: Page['operation']
  readonly startedAt = performance.now()
  readonly #clientAddress: (raw: IncomingMessage) => string
  caller: ApiKey | undefined
  answerHeaders: readonly string[] | undefined

  constructor(raw: IncomingMessage, { operation }: Page, version: number | undefined, clientAddress: LaneParts['clientAddress']) {
    this.id = requestId(raw)
    this.raw = raw
    this.version = version
    this.operation = operation
    this.#clientAddress = clientAddress
  }

  get ip(): string {
    return this.#clientAddress(this.raw)
  }
}

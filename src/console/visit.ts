// A page is a function from a visit (who, what was typed, when) to an outcome: an HTML page or a redirect.
import type { ServerResponse } from 'node:http'
import type { Accounts } from '../accounts/accounts.ts'
import { csrfToken, newToken, type Sessions, type SignedIn } from '../accounts/sessions.ts'
import type { Throttles } from '../accounts/throttle.ts'
import { type Config, ownBaseUrl } from '../config.ts'
import { BASE_PATH } from '../contract/operations.ts'
import { isOwnName, type Reach } from '../http/reach.ts'
import type { PageCall } from '../http/call.ts'
import type { PageRoute } from '../http/routes.ts'
import type { Log } from '../log.ts'
import type { Store } from '../store/store.ts'
import type { Html } from './html.ts'

/** The parts of the service that the pages use. */
export interface ConsoleParts extends Reach {
  config: Config
  /** Where it really listens, such as http://127.0.0.1:8080. */
  url: string
  store: Store
  accounts: Accounts
  sessions: Sessions
  /** Writes what was counted so far, so that a page shows it. */
  flushUsage: () => Promise<void>
  throttles: Throttles
  clock: () => number
  log: Log
}

export interface Visit extends ConsoleParts {
  call: PageCall
  /** Where the request came from; "unknown" if the client left before that was asked. */
  address: string
  /** Aborts when the client leaves before it was answered. */
  left: AbortSignal
  /** Who is signed in, if anyone. */
  who: SignedIn | undefined
  /** What was typed; empty if no form was sent. */
  form: URLSearchParams
  /** Whether `form` is from before the sign-in (typed.ts), and nothing was done with it yet. */
  isRestored: boolean
  query: URLSearchParams
  now: number
  /** Whether the browser talks https to us, directly or through a proxy. */
  secure: boolean
  /** The cookie's token; created when a form first needs one. */
  token: string | undefined
  /** Whether the token is new to the browser. */
  tokenIsNew: boolean
  /** Work to do after the response was sent. */
  afterwards: (() => Promise<void>)[]
}

export type MemberVisit = Visit & { who: SignedIn }

/** A whole page; the frame around its body comes from layout.ts. */
export interface HtmlPage {
  title: string
  body: Html
  status?: number
  headers?: Record<string, string>
  /** The part of the navigation that it belongs to. */
  section?: Section
  /** Style sheets and scripts beyond those that every page has. */
  head?: Html
  /** For a page whose content has its own width and its own landmarks. */
  wide?: boolean
}

export type Section = 'animals' | 'keys' | 'activity' | 'reference' | 'account' | 'sign-in' | 'sign-up'

/** A file that the browser saves, sent while it is read. */
export interface Download {
  file: string
  type: string
  content: AsyncIterable<string>
}

/** A page, a redirect or a file. `session` is the token for a new cookie, or 'end' to remove the cookie. */
export type Outcome = (HtmlPage | { redirect: string } | Download) & { session?: string }

type Handle<V> = (visit: V) => Outcome | Promise<Outcome>

export interface ConsoleRoute extends Pick<PageRoute, 'method' | 'path' | 'access'> {
  handle: Handle<Visit>
  /** Whether what was typed is shown again on the page with the same address if the session has ended. Never for passwords. */
  keepsTyped?: boolean
}

export function forMembers(
  method: 'GET' | 'POST',
  path: string,
  handle: Handle<MemberVisit>,
  { keepsTyped = false } = {},
): ConsoleRoute {
  return { method, path, access: 'session', handle: handle as Handle<Visit>, keepsTyped }
}

export function forAnyone(method: 'GET' | 'POST', path: string, handle: Handle<Visit>): ConsoleRoute {
  return { method, path, access: 'public', handle }
}

/** Work for this client is not worth doing any more; nobody reads the answer. */
export class ClientLeft extends Error {
  override name = 'ClientLeft'
  override message = 'The client left before it was answered.'
}

/** Returns a signal that aborts when the client leaves. The request's own 'close' event comes as soon as its body was read. */
export function whenLeft(response: ServerResponse): AbortSignal {
  if (response.destroyed) return AbortSignal.abort(new ClientLeft())
  const leave = new AbortController()
  response.once('close', () => leave.abort(new ClientLeft()))
  return leave.signal
}

/** Returns the CSRF token for the forms of this visit. */
export function csrfTokenFor(visit: Visit): string {
  return csrfToken(tokenFor(visit))
}

/** Returns the cookie's token, and makes one if there is none. */
export function tokenFor(visit: Visit): string {
  visit.tokenIsNew ||= visit.token === undefined
  return (visit.token ??= newToken())
}

export function param({ call }: Visit, name: string): string {
  return call.parameters[name] ?? ''
}

/**
 * Returns the base address of the API: the configured one, else the one that this browser uses. Anyone can send any name
 * as Host, so one that is not this machine's own is shown as HOST.
 */
export function baseAddress({ config, call }: Visit): string {
  return ownBaseUrl(config) ?? `${call.protocol}://${isOwnName(call.host) ? call.host : 'HOST'}${BASE_PATH}`
}

/** Returns the page to open after signing in: only one of ours, else the keys. */
export function safeNext(next: string | null): string {
  return next !== null && /^\/(?:keys|animals|activity|account)(?:[/?][\w/?=&%.-]*)?$/.test(next) ? next : '/keys'
}

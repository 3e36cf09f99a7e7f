// What a page is asked with, and what it gives back: pages are functions from a visit to an outcome.
import type { FastifyRequest } from 'fastify'
import type { Accounts } from '../accounts/accounts.ts'
import { csrfToken, newToken, type Sessions, type SignedIn } from '../accounts/sessions.ts'
import type { Throttle } from '../accounts/throttle.ts'
import type { Usage } from '../accounts/usage.ts'
import { type Config, ownBaseUrl } from '../config.ts'
import { BASE_PATH } from '../contract/operations.ts'
import type { Log } from '../log.ts'
import type { Store } from '../store/store.ts'
import type { Html } from './html.ts'

/** What the pages work with. */
export interface ConsoleParts {
  config: Config
  store: Store
  accounts: Accounts
  sessions: Sessions
  usage: Usage
  clock: () => number
  log: Log
  /** Logs and counts every answer. */
  record: (request: FastifyRequest, status: number) => void
}

export interface Throttles {
  signInByAccount: Throttle
  signInByAddress: Throttle
  signUpByAddress: Throttle
}

export interface Visit extends ConsoleParts {
  throttles: Throttles
  request: FastifyRequest
  /** Who is signed in, if anyone. */
  who: SignedIn | undefined
  /** What was typed; empty where no form came. */
  form: URLSearchParams
  query: URLSearchParams
  now: number
  /** Whether the browser talks https to us, directly or through a proxy. */
  secure: boolean
  /** The cookie's token; made when a form first needs one. */
  token: string | undefined
  /** Whether the token is new to the browser. */
  tokenIsNew: boolean
  /** What is still to be done once the answer is out. */
  afterwards: (() => Promise<void>)[]
}

export type MemberVisit = Visit & { who: SignedIn }

/** A whole page; the frame around its body comes from layout.ts. */
export interface HtmlPage {
  title: string
  body: Html
  status?: number
  headers?: Record<string, string>
  /** Which part of the navigation it belongs to. */
  section?: Section
}

export type Section = 'animals' | 'keys' | 'activity' | 'reference' | 'account' | 'sign-in' | 'sign-up'

/** A page, or another address to go on at. `session` is a token to hand out, or 'end' to take it back. */
export type Outcome = (HtmlPage | { redirect: string }) & { session?: string }

type Handle<V> = (visit: V) => Outcome | Promise<Outcome>

export interface ConsoleRoute {
  method: 'GET' | 'POST'
  path: string
  handle: Handle<Visit>
  /** Only for who is signed in, unless a route says otherwise. */
  forAnyone: boolean
}

export function forMembers(method: 'GET' | 'POST', path: string, handle: Handle<MemberVisit>): ConsoleRoute {
  return { method, path, handle: handle as Handle<Visit>, forAnyone: false }
}

export function forAnyone(method: 'GET' | 'POST', path: string, handle: Handle<Visit>): ConsoleRoute {
  return { method, path, handle, forAnyone: true }
}

/** Returns the CSRF token for the forms of this visit. */
export function csrfTokenFor(visit: Visit): string {
  if (visit.token === undefined) {
    visit.token = newToken()
    visit.tokenIsNew = true
  }
  return csrfToken(visit.token)
}

export function param(visit: Visit, name: string): string {
  return (visit.request.params as Record<string, string | undefined>)[name] ?? ''
}

/** Where the interface is reached: as configured, else as this browser reached us. */
export function baseAddress({ config, request }: Visit): string {
  return ownBaseUrl(config) ?? `${request.protocol}://${request.host}${BASE_PATH}`
}

/** A page of ours to go to after signing in; anything else leads to the keys. */
export function safeNext(next: string | null): string {
  return next !== null && /^\/(?:keys|animals|activity|account)(?:[/?][\w/?=&%.-]*)?$/.test(next) ? next : '/keys'
}

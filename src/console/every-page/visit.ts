// A page is a function from a visit (who, what was typed, when) to an outcome: an HTML page, a redirect or a file. The token of a
// visit is in the console's cookie.
import type { Accounts } from '../../accounts/accounts.ts'
import { isToken, newToken, type Sessions, type SignedIn } from '../../accounts/sessions.ts'
import type { Throttles } from '../../accounts/throttle.ts'
import { type Config, ownBaseUrl } from '../../config.ts'
import { BASE_PATH } from '../../contract/operations.ts'
import { isOwnName, type Reach } from '../../http/reach.ts'
import type { Call, PageCall } from '../../http/call/call.ts'
import type { PageRoute } from '../../http/call/routes.ts'
import type { CategoryNames } from '../../contract/category-name.ts'
import type { Log } from '../../log.ts'
import type { Store } from '../../store/store.ts'
import type { Html } from '../../http/html/html.ts'

/** The parts of the service that the pages use. */
export interface ConsoleParts extends Reach {
  config: Config
  /** The address that the server listens on, such as http://127.0.0.1:8080. */
  url: string
  store: Store
  accounts: Accounts
  sessions: Sessions
  /** Writes the requests counted so far to the store, so that a page shows them. */
  flushUsage: () => Promise<void>
  throttles: Throttles
  clock: () => number
  log: Log
}

export interface Visit extends ConsoleParts {
  call: PageCall
  /** The client's IP address; "unknown" if the client left before it could be read. */
  address: string
  /** Aborts when the client has gone before it was answered. */
  left: AbortSignal
  /** Undefined if the visitor is not signed in. */
  who: SignedIn | undefined
  /** The fields of the form that was sent; empty if none was. */
  form: URLSearchParams
  /** The file of a form that was sent to a route with `takesFile`; without a name if none was chosen. Reading it throws `FileRefused`. */
  file?: { name: string; parts: AsyncIterable<Buffer> }
  /** Whether `form` was typed before the sign-in (`readTyped`) and is shown again; it has not been handled yet. */
  isRestored: boolean
  query: URLSearchParams
  now: number
  /** Whether the browser uses https, directly or through a proxy. */
  secure: boolean
  /** The token in the browser's cookie; `tokenFor` creates one when a form first needs it. */
  token: string | undefined
  /** Whether the token was created in this visit, so that the response must set the cookie. */
  tokenIsNew: boolean
  /** The first parts of the addresses of pages for members, such as `keys`. */
  sections: ReadonlySet<string>
  /** Work to do after the response was sent. */
  afterwards: (() => Promise<void>)[]
}

export type SentForm = Pick<Visit, 'form' | 'file'>

/** The names of categories were read once for the page. */
export type MemberVisit = Visit & { who: SignedIn; categories: CategoryNames }

/** layout.ts puts the frame around the body. */
export interface HtmlPage {
  title: string
  body: Html
  status?: number
  headers?: Record<string, string>
  /** The entry of the navigation that is marked as the current one. */
  section?: Section
  /** Style sheets and scripts beyond those that every page has. */
  head?: Html
  /** For a page whose content has its own width and its own landmarks. */
  wide?: boolean
}

type Developers = 'activity' | 'keys' | 'reference'
export type Section = 'animals' | 'categories' | 'history' | 'people' | 'account' | Developers | 'sign-in' | 'sign-up'

/** A file that the browser saves. The content is sent while it is read from the store. */
export interface Download {
  file: string
  type: string
  content: AsyncIterable<string>
}

/** `session` is the token for a new cookie, or 'end' to remove the cookie. */
export type Outcome = (HtmlPage | { redirect: string } | Download) & { session?: string }

type Handle<V> = (visit: V) => Outcome | Promise<Outcome>

export interface ConsoleRoute extends Pick<PageRoute, 'method' | 'path' | 'access'> {
  handle: Handle<Visit>
  /** Whether the page at the same address shows again what was typed if the session had ended. Never set for passwords. */
  keepsTyped?: boolean
  takesFile?: boolean
  /** What the page says, instead of MAYBE_CHANGED, if the database fails while it handles the form (problem-pages.ts). */
  ifUnavailable?: string
}

type FormOptions = Pick<ConsoleRoute, 'keepsTyped' | 'takesFile' | 'ifUnavailable'>

export type MakeRoute<V> = (
  method: ConsoleRoute['method'],
  path: string,
  handle: Handle<V>,
  options?: FormOptions,
) => ConsoleRoute

export const forAnyone: MakeRoute<Visit> = (method, path, handle, options) => {
  return { method, path, access: 'public', handle, ...options }
}

export const forMembers: MakeRoute<MemberVisit> = (method, path, handle, options) => {
  const withNames = async (visit: Visit) =>
    handle(Object.assign(visit as MemberVisit, { categories: await visit.store.categories.names() }))
  return { method, path, access: 'session', handle: withNames, ...options }
}

export function isManager({ who }: Visit): boolean {
  return who?.account.role === 'manager'
}

/** Returns the cookie's token; creates one if the browser has none. */
export function tokenFor(visit: Visit): string {
  visit.tokenIsNew ||= visit.token === undefined
  return (visit.token ??= newToken())
}

/**
 * The value of the cookie is a random token: the visitor is signed in if the store has a session with its hash. `__Host-` binds
 * the cookie to this host and to https. Browsers refuse it on plain http, which loopback uses.
 */
function cookieName(secure: boolean): string {
  return secure ? '__Host-petstore' : 'petstore'
}

/** Bounds the look-ups in the store: each cookie is one. */
const MOST_COOKIES = 10

/**
 * Returns the tokens of all cookies with the console's name and a token's form. A browser sends several if another host of
 * the domain, or a page below another path, has set one too.
 */
export function readCookies({ request }: Call, secure: boolean): string[] {
  const prefix = `${cookieName(secure)}=`
  const cookies = (request.headers.cookie ?? '').split(';').map((cookie) => cookie.trim())
  const tokens = cookies.filter((cookie) => cookie.startsWith(prefix)).map((cookie) => cookie.slice(prefix.length))
  return [...new Set(tokens.filter(isToken))].slice(0, MOST_COOKIES)
}

/** The cookie lasts until the browser is closed. The session may end earlier (accounts/sessions.ts). */
export function cookieHeader(token: string, secure: boolean): string {
  return `${cookieName(secure)}=${token}; Path=/; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`
}

export function forgetCookieHeader(secure: boolean): string {
  return `${cookieHeader('', secure)}; Max-Age=0`
}

/**
 * Returns the base address of the API: the configured one, else the one that this browser uses. A Host header can have any
 * name, so a name that is not this machine's own is replaced by HOST.
 */
export function baseAddress({ config, call }: Visit): string {
  return ownBaseUrl(config) ?? `${call.protocol}://${isOwnName(call.host) ? call.host : 'HOST'}${BASE_PATH}`
}

/** The page that a visitor starts from after the sign-in. */
export const HOME = '/animals'

/**
 * Returns the address to open after the sign-in: `next` if it is a page of the console, else the home page. For a download
 * it is the page with its button: a browser that is sent a file keeps showing the sign-in form. The query may have all
 * characters that browsers send as they are, which are more than RFC 3986 allows: visible ASCII without " # < >.
 */
export function safeNext(next: string | null, { sections }: Pick<Visit, 'sections'>): string {
  const page = next?.replace(/^\/animals\.csv(?=\?|$)/, '/animals') ?? ''
  const [, section = ''] = /^\/(\w+)(?:\/[\w/=&%.+*-]*)?(?:\?[!$-;=?-~]*)?$/.exec(page) ?? []
  return sections.has(section) ? page : HOME
}

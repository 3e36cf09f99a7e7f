// The console as routes: finds the session, checks access and forms, and renders the page with its headers.
import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { TooManyHashes } from '../accounts/passwords.ts'
import { isCsrfToken, type SignedIn } from '../accounts/sessions.ts'
import { ownBaseUrl } from '../config.ts'
import { ERRORS, Refusal } from '../contract/errors.ts'
import { quote } from '../contract/json.ts'
import { contentOf } from '../http/answer.ts'
import { announcesBody, checkBodySize, readBody } from '../http/body.ts'
import type { Answer, PageCall, Result } from '../http/call.ts'
import type { Pages, PageRoute } from '../http/routes.ts'
import { logRepeated } from '../log.ts'
import { isOwnName } from '../http/reach.ts'
import { StoreUnavailable } from '../store/store.ts'
import { accountRoutes } from './account.ts'
import { activityRoutes } from './activity.ts'
import { animalRoutes } from './animal.ts'
import { animalsRoutes } from './animals.ts'
import { assetAnswer, isAsset } from './assets.ts'
import { cookieHeader, forgetCookieHeader, readCookies } from './cookie.ts'
import { keyRoutes } from './keys.ts'
import { layout } from './layout.ts'
import {
  badRequestPage,
  busyPage,
  misdirectedPage,
  notFoundPage,
  serverErrorPage,
  staleFormPage,
} from './problem-pages.ts'
import { referenceRoutes } from './reference.ts'
import { SECURITY_HEADERS } from './security-headers.ts'
import { signInRoutes } from './sign-in.ts'
import {
  ClientLeft,
  type ConsoleParts,
  type ConsoleRoute,
  type Download,
  type Outcome,
  tokenFor,
  type Visit,
  whenLeft,
} from './visit.ts'
import { readTyped, withTyped } from './typed.ts'
import { welcomeRoutes } from './welcome.ts'

/** The first one that fits a request takes it. */
const ROUTES: readonly ConsoleRoute[] = [
  ...welcomeRoutes,
  ...signInRoutes,
  ...keyRoutes,
  ...animalsRoutes,
  ...animalRoutes,
  ...activityRoutes,
  ...accountRoutes,
  ...referenceRoutes,
]

/** For a page that waits for nothing. */
const STAYING = new AbortController().signal

export function createConsole(parts: ConsoleParts): Pages {
  const { clock, log, sessions, atHome, url } = parts
  const isHttps = ownBaseUrl(parts.config)?.startsWith('https:') ?? false
  let warnedOfProxy = false

  /** Does what every address of the console needs, before its own work. */
  function guarded(answer: PageRoute['answer']): PageRoute['answer'] {
    return (call, response) => {
      call.sameOrigin = true
      call.answerHeaders = headerList(SECURITY_HEADERS)
      warnOfProxy(call)
      return atHome && !isOwnName(call.host) ? refuseHost(call) : answer(call, response)
    }
  }

  /** Warns once of a proxy that is not trusted: it makes all its clients one address to the throttles. */
  function warnOfProxy({ untrustedProxy, ip }: PageCall): void {
    if (warnedOfProxy || !untrustedProxy) return
    warnedOfProxy = true
    const message =
      'X-Forwarded-For is ignored, since it came from an address that is not trusted. If this is your proxy, name it in ' +
      'PETSTORE_TRUST_PROXY: until then all its clients are throttled as one'
    log.warn({ address: ip }, message)
  }

  /** For a request under another name at home: a browser gets a page, everyone else the Error body. */
  function refuseHost(call: PageCall): Result {
    if (/\btext\/html\b/.test(call.raw.headers.accept ?? '')) return render(visitOf(call), misdirectedPage(url))
    const message = `The console answers only to IP addresses and localhost, such as ${url}/, got the Host ${quote(call.host)}.`
    return new Refusal('misdirected_request', message)
  }

  async function serve(route: ConsoleRoute, call: PageCall, response: ServerResponse): Promise<Answer> {
    try {
      const form = await readForm(call)
      const visit = await open(call, whenLeft(response))
      if (!(form instanceof URLSearchParams)) return render(visit, form)
      visit.form = form
      const typed = visit.who && route.method === 'GET' ? readTyped(visit) : undefined
      if (typed !== undefined) Object.assign(visit, { form: typed, isRestored: true })
      const outcome = await outcomeOf(route, visit)
      if (response.destroyed) void finish(visit)
      else response.once('close', () => void finish(visit))
      return render(visit, outcome)
    } catch (error) {
      return render(await openAnyway(call), explain(error, call))
    }
  }

  async function open(call: PageCall, left = STAYING): Promise<Visit> {
    const visit = visitOf(call, left)
    return { ...visit, ...(await findSession(readCookies(call, visit.secure))) }
  }

  /** Opens the visit even if the store, which knows the session, is unavailable. */
  async function openAnyway(call: PageCall): Promise<Visit> {
    try {
      return await open(call)
    } catch {
      return visitOf(call)
    }
  }

  /** Returns the visit of somebody unknown. */
  function visitOf(call: PageCall, left = STAYING): Visit {
    return {
      ...parts,
      call,
      address: call.ip || 'unknown',
      left,
      who: undefined,
      form: new URLSearchParams(),
      isRestored: false,
      query: new URLSearchParams(call.query),
      now: clock(),
      secure: isHttps || call.protocol === 'https',
      token: undefined,
      tokenIsNew: false,
      afterwards: [],
    }
  }

  /** Without a session the first token is the one that forms are bound to. */
  async function findSession(
    tokens: readonly string[],
  ): Promise<{ token: string | undefined; who: SignedIn | undefined }> {
    for (const token of tokens) {
      const who = await sessions.find(token)
      if (who !== undefined) return { token, who }
    }
    return { token: tokens[0], who: undefined }
  }

  async function outcomeOf(route: ConsoleRoute, visit: Visit): Promise<Outcome> {
    const isAllowed = visit.who !== undefined || route.access === 'public'
    const isOurs = route.method === 'GET' || isOurForm(visit)
    if (isAllowed && isOurs) return route.handle(visit)
    // A page of ours from before the last sign-in has an old CSRF token.
    const kept = route.keepsTyped && (isOurs || isSameOrigin(visit)) ? typedPage(visit) : undefined
    if (!isAllowed) return toSignIn(kept ?? pageFor(route, visit))
    return kept === undefined ? staleFormPage(visit) : { redirect: kept }
  }

  async function finish({ afterwards, call }: Visit): Promise<void> {
    for (const work of afterwards) {
      await work().catch((error: unknown) =>
        log.error({ requestId: call.id, error }, 'the work after the response failed'),
      )
    }
  }

  function explain(error: unknown, call: PageCall): Outcome {
    if (error instanceof ClientLeft) return badRequestPage(400, error.message)
    if (error instanceof TooManyHashes) return busyPage()
    if (error instanceof StoreUnavailable) {
      logRepeated(log, 'error', { requestId: call.id, reason: error.message }, 'the database is unavailable')
      return serverErrorPage(call, 503)
    }
    log.error({ requestId: call.id, error }, 'the console failed')
    return serverErrorPage(call, 500)
  }

  /** Costs a look-up only where a cookie came. */
  async function notFound(call: PageCall): Promise<Answer> {
    const visit = await openAnyway(call)
    return render(visit, notFoundPage(visit))
  }

  const pages = ROUTES.map((route): PageRoute => ({
    ...route,
    answer: guarded((call, response) => serve(route, call, response)),
  }))
  const asset: PageRoute = {
    method: 'GET',
    path: '/assets/{name}',
    access: 'public',
    answer: guarded((call) => {
      const { name = '' } = call.parameters
      return isAsset(name) ? assetAnswer(name, call) : notFound(call)
    }),
  }
  return { routes: [...pages, asset], notFound }
}

const FORM_TYPE = /^application\/x-www-form-urlencoded\s*(?:;|$)/i

/** Reads what was typed into the form that the request brings, if any; returns a page if it can't be read. */
async function readForm({ raw }: PageCall): Promise<URLSearchParams | Outcome> {
  const type = raw.headers['content-type']
  const isNothing = type === undefined && !announcesBody(raw)
  if (raw.method !== 'POST' || isNothing) return new URLSearchParams()
  if (!FORM_TYPE.test(type ?? ''))
    return badRequestPage(415, 'A form must have Content-Type: application/x-www-form-urlencoded.')
  const bytes = checkBodySize(raw) ?? (await readBody(raw))
  if (bytes instanceof Refusal) return badRequestPage(ERRORS[bytes.code].status, bytes.message)
  return new URLSearchParams(bytes.toString())
}

/** Whether the browser says that one of our own pages sent the request. */
function isSameOrigin({ call }: Visit): boolean {
  return call.raw.headers['sec-fetch-site'] === 'same-origin'
}

/** Accepts only forms of our own pages: with the CSRF token of this browser's cookie, and not sent by another site. */
function isOurForm({ token, form, call }: Visit): boolean {
  const site = call.raw.headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return false
  return token !== undefined && isCsrfToken(token, form.get('csrf') ?? '')
}

/** Returns the page of a form with what was typed, which was not saved. */
function typedPage(visit: Visit): string {
  return withTyped(visit.call.raw.url!, visit.form, tokenFor(visit))
}

/** Returns the page that was requested; for a form, one that is there. */
function pageFor({ method, path }: ConsoleRoute, { call }: Visit): string {
  if (method === 'GET') return call.raw.url!
  const isPage = ROUTES.some((route) => route.method === 'GET' && route.path === path && !path.includes('{'))
  return isPage ? path : `/${path.split('/')[1]}`
}

/** Leads to sign-in, and from there to this page. */
function toSignIn(next: string): Outcome {
  return { redirect: `/sign-in?next=${encodeURIComponent(next)}` }
}

function render(visit: Visit, outcome: Outcome): Answer {
  if ('redirect' in outcome) {
    const headers = ['Location', outcome.redirect, 'Content-Length', '0', ...setCookie(visit, outcome)]
    return { status: 303, cache: 'no-store', headers, body: undefined }
  }
  if ('file' in outcome) return download(visit, outcome)
  const { headers, body } = contentOf(layout(visit, outcome).text, 'text/html; charset=utf-8')
  visit.call.answerHeaders = headerList({ ...SECURITY_HEADERS, ...outcome.headers })
  return {
    status: outcome.status ?? 200,
    // No cache may keep a page of an account, or one with a CSRF token.
    ...((visit.who !== undefined || visit.token !== undefined) && { cache: 'no-store' }),
    headers: [...headers, ...setCookie(visit, outcome)],
    body,
  }
}

function download({ call, log, left }: Visit, { file, type, content }: Download): Answer {
  async function* logged(): AsyncGenerator<string> {
    try {
      yield* content
    } catch (error) {
      if (!left.aborted) log.error({ requestId: call.id, error }, 'a download broke off')
      throw error
    }
  }
  const headers = ['Content-Type', type, 'Content-Disposition', `attachment; filename="${file}"`]
  const body = call.raw.method === 'HEAD' ? undefined : Readable.from(logged())
  return { status: 200, cache: 'no-store', headers, body }
}

function headerList(headers: Record<string, string>): string[] {
  return Object.entries(headers).flat()
}

/** A page may have made a token for its forms, so this comes after its layout. */
function setCookie({ secure, token, tokenIsNew }: Visit, { session }: Outcome): string[] {
  if (session === 'end') return ['Set-Cookie', forgetCookieHeader(secure)]
  const fresh = session ?? (tokenIsNew ? token : undefined)
  return fresh === undefined ? [] : ['Set-Cookie', cookieHeader(fresh, secure)]
}

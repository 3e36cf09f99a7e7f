// The path of a request through the console: finds the session, checks access and the CSRF token, calls the page's function,
// and renders its outcome with headers and cookie.
import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { isCsrfToken } from '../accounts/sessions.ts'
import { ownBaseUrl } from '../config.ts'
import { ERRORS, Refusal } from '../contract/errors.ts'
import { htmlContent } from '../http/answers/content.ts'
import { announcesBody, checkBodySize, readBody } from '../http/body.ts'
import { type Answer, isFromOtherSite, type PageCall } from '../http/call/call.ts'
import type { Pages, PageRoute } from '../http/call/routes.ts'
import { whenLeft } from '../http/connections/client-left.ts'
import { isOwnName } from '../http/reach.ts'
import { StoreUnavailable } from '../store/store.ts'
import { accountRoutes } from './people/account.ts'
import { allKeysRoutes } from './developers/all-keys.ts'
import { activityRoutes } from './developers/activity.ts'
import { animalRoutes } from './animals/animal.ts'
import { animalAddingRoutes } from './animals/animal-adding.ts'
import { animalBatchesRoutes } from './animals/animal-batches.ts'
import { animalFileRoutes } from './animals/animal-file.ts'
import { animalManyRoutes } from './animals/animal-many.ts'
import { animalsRoutes } from './animals/animals.ts'
import { assetAnswer } from './every-page/assets.ts'
import { readFileForm } from './every-page/file-form.ts'
import { readTyped, withTyped } from './every-page/forms.ts'
import { inShare } from './every-page/readings.ts'
import { importRoutes } from './imports/import-pages.ts'
import { categoryRoutes } from './animals/categories.ts'
import { keyRoutes } from './developers/keys.ts'
import { layout } from './every-page/layout.ts'
import { linkRoutes } from './people/link.ts'
import { peopleRoutes } from './people/people.ts'
import { badRequestPage, errorPage, notFoundPage, staleFormPage } from './every-page/problem-pages.ts'
import { recentChangesRoutes } from './animals/recent-changes.ts'
import { referenceRoutes } from './developers/reference.ts'
import { SECURITY_HEADERS } from '../http/html/security-headers.ts'
import { signInRoutes, toSignIn } from './people/sign-in.ts'
import {
  type ConsoleParts,
  type ConsoleRoute,
  cookieHeader,
  type Download,
  forgetCookieHeader,
  type Outcome,
  readCookies,
  type SentForm,
  type Visit,
} from './every-page/visit.ts'
import { welcomeRoutes } from './developers/welcome.ts'

/** The first route that matches a request handles it. */
export const ROUTES: readonly ConsoleRoute[] = [
  ...welcomeRoutes,
  ...signInRoutes,
  ...keyRoutes,
  ...animalsRoutes,
  ...animalFileRoutes,
  ...recentChangesRoutes,
  ...animalAddingRoutes,
  ...animalBatchesRoutes,
  ...animalManyRoutes,
  ...importRoutes,
  ...categoryRoutes,
  ...animalRoutes,
  ...activityRoutes,
  ...accountRoutes,
  ...allKeysRoutes,
  ...peopleRoutes,
  ...linkRoutes,
  ...referenceRoutes,
]

export const SECTIONS: ReadonlySet<string> = new Set(
  ROUTES.flatMap(({ access, path }) => (access === 'session' ? path.split('/')[1]! : [])),
)

export function createConsole(parts: ConsoleParts): Pages {
  const { clock, log, sessions, atHome, url } = parts
  const isHttps = ownBaseUrl(parts.config)?.startsWith('https:') ?? false
  /** For a Host that could be another site's (DNS rebinding), which it does not repeat. */
  const misdirected = new Refusal(
    'misdirected_request',
    `The console answers only to IP addresses and localhost, so that another site cannot pose as it: open ${url}/. To serve it under a name, set PETSTORE_BASE_URL or PETSTORE_STAGING_BASE_URL.`,
  )
  let warnedOfProxy = false

  /** Adds the steps that every address needs: the security headers, the warning of a proxy, the check of the host. */
  function guarded(answer: PageRoute['answer']): PageRoute['answer'] {
    return (call, response) => {
      call.sameOrigin = true
      call.answerHeaders = headerList(SECURITY_HEADERS)
      warnOfProxy(call)
      return atHome && !isOwnName(call.host) ? misdirected : answer(call, response)
    }
  }

  /** Warns once of an untrusted proxy: to the throttles, all its clients have one address. */
  function warnOfProxy({ untrustedProxy, ip }: PageCall): void {
    if (warnedOfProxy || !untrustedProxy) return
    warnedOfProxy = true
    const message =
      'X-Forwarded-For is ignored, since it came from an address that is not trusted. If this is your proxy, name it in ' +
      'PETSTORE_TRUST_PROXY: until then all its clients are throttled as one'
    log.warn({ address: ip }, message)
  }

  async function serve(route: ConsoleRoute, call: PageCall, response: ServerResponse): Promise<Answer> {
    let tried: ConsoleRoute | undefined
    async function answer(isRead = true): Promise<Answer> {
      const sent = isRead ? await readForm(call, route) : { form: new URLSearchParams() }
      // A public page does nothing that takes long, so its connection is not read on for news of its client.
      const isPublicPage = route.access === 'public' && route.method === 'GET'
      const visit = await open(call, isPublicPage, isPublicPage ? undefined : whenLeft(response))
      if (!('form' in sent)) return render(visit, sent)
      Object.assign(visit, sent)
      const typed = visit.who && route.method === 'GET' ? readTyped(visit) : undefined
      if (typed !== undefined) Object.assign(visit, { form: typed, isRestored: true })
      tried = route
      const outcome = await outcomeOf(route, visit)
      if (response.destroyed) void finish(visit)
      else response.once('close', () => void finish(visit))
      return render(visit, outcome)
    }
    try {
      if (!route.takesFile) return await answer()
      const { who } = await open(call)
      // Nothing of a file is read for somebody who is not signed in.
      return await (who === undefined ? answer(false) : inShare(who.account.id, answer))
    } catch (error) {
      return render(await open(call, true), errorPage(error, call, log, tried))
    }
  }

  /**
   * Finds the session of the visit. A browser may send several cookies; if none has a session, forms use the first one. If the store is
   * unavailable, a page `forAnyone` is opened without the session. Without `left`, the page does not learn that the client has left.
   */
  async function open(call: PageCall, forAnyone = false, left = new AbortController().signal): Promise<Visit> {
    const secure = isHttps || call.protocol === 'https'
    const tokens = readCookies(call, secure)
    const visit: Visit = {
      ...parts,
      call,
      address: call.ip || 'unknown',
      left,
      who: undefined,
      form: new URLSearchParams(),
      isRestored: false,
      query: new URLSearchParams(call.query),
      now: clock(),
      secure,
      token: tokens[0],
      tokenIsNew: false,
      sections: SECTIONS,
      afterwards: [],
    }
    try {
      for (const token of tokens) {
        const who = await sessions.find(token)
        if (who !== undefined) return { ...visit, token, who }
      }
    } catch (error) {
      if (!forAnyone || !(error instanceof StoreUnavailable)) throw error
    }
    return visit
  }

  async function finish({ afterwards, call }: Visit): Promise<void> {
    for (const work of afterwards) {
      await work().catch((error: unknown) =>
        log.error({ requestId: call.id, error }, 'the work after the response failed'),
      )
    }
  }

  async function notFound(call: PageCall): Promise<Answer> {
    call.sameOrigin = true
    const visit = await open(call, true)
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
    answer: guarded((call) => assetAnswer(call) ?? notFound(call)),
  }
  return { routes: [...pages, asset], notFound }
}

async function outcomeOf(route: ConsoleRoute, visit: Visit): Promise<Outcome> {
  const isAllowed = visit.who !== undefined || route.access === 'public'
  const isGenuine = route.method === 'GET' || passesCsrfCheck(visit)
  if (isAllowed && isGenuine) return route.handle(visit)
  // A page that was opened before the last sign-in has an old CSRF token: what was typed there is kept, too.
  const kept = route.keepsTyped && (isGenuine || isSameOrigin(visit)) ? withTyped(visit) : undefined
  if (!isAllowed) return toSignIn(kept ?? pageFor(route, visit))
  return kept === undefined ? staleFormPage(visit) : { redirect: kept }
}

const FORM_TYPE = /^application\/x-www-form-urlencoded\s*(?:;|$)/i
const FILE_FORM_TYPE = /^multipart\/form-data\s*;\s*boundary="?[^\s;"]{1,70}"?$/i

/** Reads the fields of a form, none if the request has no body, to its file. Resolves with an error page if the body can't be read. */
async function readForm({ request }: PageCall, { takesFile }: ConsoleRoute): Promise<SentForm | Outcome> {
  const type = request.headers['content-type']
  const isEmpty = type === undefined && !announcesBody(request)
  if (request.method !== 'POST' || isEmpty) return { form: new URLSearchParams() }
  if (takesFile && FILE_FORM_TYPE.test(type ?? '')) return readFileForm(request)
  if (!FORM_TYPE.test(type ?? ''))
    return badRequestPage(415, 'A form must have Content-Type: application/x-www-form-urlencoded.')
  const bytes = checkBodySize(request) ?? (await readBody(request))
  if (bytes instanceof Refusal) return badRequestPage(ERRORS[bytes.code].status, bytes.message)
  return { form: new URLSearchParams(bytes.toString()) }
}

/** Returns whether the browser says that a page of the console sent the request. Over plain HTTP, only Origin tells. */
function isSameOrigin({ call: { request, protocol, host } }: Visit): boolean {
  const { origin, 'sec-fetch-site': site } = request.headers
  return site === undefined ? origin === `${protocol}://${host}` : site === 'same-origin'
}

/** Returns whether a form has the CSRF token of this browser's cookie. A form that another site sent never passes. */
function passesCsrfCheck({ token, form, call }: Visit): boolean {
  return !isFromOtherSite(call) && token !== undefined && isCsrfToken(token, form.get('csrf') ?? '')
}

/** Returns the page to open after the sign-in: for a form without a page of the same path, its section's first page. */
function pageFor({ method, path }: ConsoleRoute, { call }: Visit): string {
  if (method === 'GET') return call.request.url!
  const isPage = ROUTES.some((route) => route.method === 'GET' && route.path === path && !path.includes('{'))
  return isPage ? path : `/${path.split('/')[1]}`
}

function render(visit: Visit, outcome: Outcome): Answer {
  if ('redirect' in outcome) {
    const headers = ['Location', outcome.redirect, 'Content-Length', '0', ...setCookie(visit, outcome)]
    return { status: 303, cache: 'no-store', headers, body: undefined }
  }
  if ('file' in outcome) return download(visit, outcome)
  const { headers, body } = htmlContent(layout(visit, outcome))
  visit.call.answerHeaders = headerList({ ...SECURITY_HEADERS, ...outcome.headers })
  return {
    status: outcome.status ?? 200,
    // No cache may store a page of an account, or one with a CSRF token.
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
  const body = call.request.method === 'HEAD' ? undefined : Readable.from(logged())
  return { status: 200, cache: 'no-store', headers, body }
}

function headerList(headers: Record<string, string>): string[] {
  return Object.entries(headers).flat()
}

/** Call it after the page was rendered: rendering a form may create the cookie's token. */
function setCookie({ secure, token, tokenIsNew }: Visit, { session }: Outcome): string[] {
  if (session === 'end') return ['Set-Cookie', forgetCookieHeader(secure)]
  const fresh = session ?? (tokenIsNew ? token : undefined)
  return fresh === undefined ? [] : ['Set-Cookie', cookieHeader(fresh, secure)]
}

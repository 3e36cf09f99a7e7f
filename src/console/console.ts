// The console as a Fastify plugin: finds the session, checks access and forms, and sends the page with its headers.
import type {
  FastifyError,
  FastifyInstance,
  FastifyPluginCallback,
  FastifyReply,
  FastifyRequest,
  HTTPMethods,
} from 'fastify'
import { TooManyHashes } from '../accounts/hash-queue.ts'
import { isCsrfToken, type SignedIn } from '../accounts/sessions.ts'
import { ownBaseUrl } from '../config.ts'
import { errorBody, helpLink } from '../contract/errors.ts'
import { quote } from '../contract/json.ts'
import { logRepeated } from '../log.ts'
import { StoreUnavailable } from '../store/store.ts'
import { accountRoutes } from './account.ts'
import { activityRoutes } from './activity.ts'
import { addAnimalRoutes } from './add-animal.ts'
import { animalRoutes } from './animal.ts'
import { animalsRoutes } from './animals.ts'
import { isAsset, sendAsset } from './assets.ts'
import { addressOf, ClientLeft, createProxyWarning, whenLeft } from './connection.ts'
import { cookieHeader, forgetCookieHeader, readCookies } from './cookie.ts'
import { deprecationRoutes } from './deprecations.ts'
import { errorCodeRoutes } from './error-codes.ts'
import { isOwnName } from '../own-name.ts'
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
import { referencePage } from './reference.ts'
import { SECURITY_HEADERS } from './security-headers.ts'
import { signInRoutes } from './sign-in.ts'
import { signUpRoutes } from './sign-up.ts'
import type { ConsoleParts, ConsoleRoute, Outcome, Visit } from './visit.ts'
import { welcomeRoutes } from './welcome.ts'

const ROUTES: readonly ConsoleRoute[] = [
  ...welcomeRoutes,
  ...signUpRoutes,
  ...signInRoutes,
  ...keyRoutes,
  ...animalsRoutes,
  ...addAnimalRoutes,
  ...animalRoutes,
  ...activityRoutes,
  ...accountRoutes,
  ...errorCodeRoutes,
  ...deprecationRoutes,
]

/** The console takes no API key, and the API no session. */
const PUBLIC = { public: true }

export interface Console {
  plugin: FastifyPluginCallback
  /** Returns the page for an unknown address, with its headers. */
  notFound: (request: FastifyRequest) => { headers: Record<string, string>; type: string; body: string }
}

export function createConsole(parts: ConsoleParts): Console {
  const { clock, log, sessions, record, atHome, url } = parts
  const isHttps = ownBaseUrl(parts.config)?.startsWith('https:') ?? false

  const warnOfProxy = createProxyWarning(log)

  async function open(request: FastifyRequest, reply: FastifyReply): Promise<Visit> {
    const address = addressOf(request)
    const secure = isHttps || request.protocol === 'https'
    const left = whenLeft(reply)
    const { token, who } = await findSession(readCookies(request, secure))
    const form = request.body instanceof URLSearchParams ? request.body : new URLSearchParams()
    const query = new URLSearchParams(request.url.split('?')[1])
    const common = { request, address, left, now: clock(), afterwards: [] }
    return { ...parts, ...common, who, form, query, secure, token, tokenIsNew: false }
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

  async function outcomeOf({ method, path, handle, forAnyone }: ConsoleRoute, visit: Visit): Promise<Outcome> {
    if (method === 'POST' && !isOurForm(visit))
      return visit.who || forAnyone ? staleFormPage(visit) : toSignIn(path, visit)
    if (visit.who === undefined && !forAnyone) return toSignIn(path, visit)
    return handle(visit)
  }

  const plugin: FastifyPluginCallback = (app, _options, done) => {
    app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (_request, text, parsed) =>
      parsed(null, new URLSearchParams(text as string)),
    )
    app.addHook('onRequest', (request, _reply, next) => {
      warnOfProxy(request)
      next()
    })
    app.addHook('onSend', (request, reply, payload, sent) => {
      for (const [name, value] of Object.entries({ 'Request-Id': request.id, ...SECURITY_HEADERS })) {
        if (!reply.hasHeader(name)) reply.header(name, value)
      }
      sent(null, payload)
    })
    app.addHook('onRequest', (request, reply, checked) => {
      if (atHome && !isOwnName(request.host)) refuseHost(request, reply)
      else checked()
    })
    app.addHook('onResponse', (request, reply, finished) => {
      record(request, reply.statusCode)
      finished()
    })
    app.setErrorHandler(async (error: FastifyError, request, reply) =>
      answer(reply, await openAnyway(request, reply), explain(error, request)),
    )
    for (const route of ROUTES) {
      app.route({
        method: route.method === 'GET' ? ['GET', 'HEAD'] : route.method,
        url: route.path,
        config: PUBLIC,
        handler: async (request, reply) => {
          const visit = await open(request, reply)
          const outcome = await outcomeOf(route, visit)
          if (reply.raw.destroyed) void finish(visit)
          else reply.raw.once('close', () => void finish(visit))
          return answer(reply, visit, outcome)
        },
      })
    }
    serveReference(app)
    done()
  }

  function serveReference(app: FastifyInstance): void {
    const route = { method: ['GET', 'HEAD'] as HTTPMethods[], config: PUBLIC }
    app.route({
      ...route,
      url: '/docs',
      handler: async (request, reply) => {
        const visit = await open(request, reply)
        const { body, headers } = referencePage(visit)
        return reply
          .headers({ ...freshness(visit), ...headers })
          .type(HTML_TYPE)
          .send(body.text)
      },
    })
    app.route({
      ...route,
      url: '/assets/:name',
      handler: async (request, reply) => {
        const { name } = request.params as { name: string }
        if (isAsset(name)) return sendAsset(name, request, reply)
        return answer(reply, anonymous(request), notFoundPage(anonymous(request)))
      },
    })
  }

  /** For a request under another name at home: a browser gets a page, everyone else the Error body. */
  function refuseHost(request: FastifyRequest, reply: FastifyReply): void {
    if (/\btext\/html\b/.test(request.headers.accept ?? ''))
      return void answer(reply, anonymous(request), misdirectedPage(url))
    const message = `The console answers only to IP addresses and localhost, such as ${url}/, got the Host ${quote(request.host)}.`
    const body = errorBody('misdirected_request', message)
    // As bytes: to a text Fastify would add a charset, which JSON has not.
    reply
      .code(body.status)
      .header('Content-Type', 'application/json')
      .header('Link', helpLink(body.code))
      .send(Buffer.from(JSON.stringify(body)))
  }

  async function finish({ afterwards, request }: Visit): Promise<void> {
    for (const work of afterwards) {
      await work().catch((error: unknown) =>
        log.error({ requestId: request.id, error }, 'the work after the response failed'),
      )
    }
  }

  /** Opens the visit even if the store, which knows the session, is unavailable. */
  async function openAnyway(request: FastifyRequest, reply: FastifyReply): Promise<Visit> {
    try {
      return await open(request, reply)
    } catch {
      return anonymous(request)
    }
  }

  function anonymous(request: FastifyRequest): Visit {
    const nothing = new URLSearchParams()
    const common = {
      who: undefined,
      form: nothing,
      query: nothing,
      token: undefined,
      tokenIsNew: false,
      afterwards: [],
    }
    return {
      ...parts,
      request,
      address: addressOf(request),
      left: STAYING,
      now: clock(),
      secure: isHttps,
      ...common,
    }
  }

  function explain(error: FastifyError, request: FastifyRequest): Outcome {
    const status = error.statusCode ?? 500
    if (error instanceof ClientLeft) return badRequestPage(400, error.message)
    if (error instanceof TooManyHashes) return busyPage()
    if (error instanceof StoreUnavailable) {
      logRepeated(log, 'error', { requestId: request.id, reason: error.message }, 'the database is unavailable')
      return serverErrorPage(request, 503)
    }
    if (status >= 400 && status < 500) return badRequestPage(status, `${error.message}.`)
    log.error({ requestId: request.id, error }, 'the console failed')
    return serverErrorPage(request, 500)
  }

  /** The same page for everyone, so that an unknown address costs no look-up. */
  function notFound(request: FastifyRequest): { headers: Record<string, string>; type: string; body: string } {
    const visit = anonymous(request)
    return { headers: SECURITY_HEADERS, type: HTML_TYPE, body: layout(visit, notFoundPage(visit)).text }
  }

  return { plugin, notFound }
}

/** For a page that waits for nothing. */
const STAYING = new AbortController().signal

const HTML_TYPE = 'text/html; charset=utf-8'

function answer(reply: FastifyReply, visit: Visit, outcome: Outcome): FastifyReply {
  if (outcome.session === 'end') reply.header('Set-Cookie', forgetCookieHeader(visit.secure))
  else if (outcome.session !== undefined) reply.header('Set-Cookie', cookieHeader(outcome.session, visit.secure))
  if ('redirect' in outcome) return reply.header('Cache-Control', 'no-store').redirect(outcome.redirect, 303)
  const body = layout(visit, outcome).text
  if (visit.tokenIsNew && outcome.session === undefined)
    reply.header('Set-Cookie', cookieHeader(visit.token!, visit.secure))
  return reply
    .code(outcome.status ?? 200)
    .headers({ ...freshness(visit), ...outcome.headers })
    .type(HTML_TYPE)
    .send(body)
}

/** No cache may keep a page of an account, or one with a CSRF token. */
function freshness({ who, token }: Visit): { 'Cache-Control': string } {
  return { 'Cache-Control': who === undefined && token === undefined ? 'private, no-cache' : 'no-store' }
}

/** Accepts only forms of our own pages: with the CSRF token of this browser's cookie, and not sent by another site. */
function isOurForm({ token, form, request }: Visit): boolean {
  const site = request.headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return false
  return token !== undefined && isCsrfToken(token, form.get('csrf') ?? '')
}

/** Leads to sign-in, and from there back to the requested page; a form has to be filled in again. */
function toSignIn(path: string, { request }: Visit): Outcome {
  const isPage = ROUTES.some((route) => route.method === 'GET' && route.path === path && !path.includes(':'))
  const formPage = isPage ? path : `/${path.split('/')[1]}`
  const next = request.method === 'POST' ? formPage : request.url
  return { redirect: `/sign-in?next=${encodeURIComponent(next)}` }
}

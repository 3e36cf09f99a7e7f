// Routes that need no key: is the process alive, is it ready, and the OpenAPI document.
import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import type { Config } from '../config.ts'
import type { Refusal } from '../contract/errors.ts'
import { renderOpenapi } from '../contract/openapi.ts'
import type { Store } from '../store/store.ts'
import { JSON_TYPE } from './answer.ts'
import type { Answer, Send } from './call.ts'

interface PublicParts {
  config: Config
  store: Store
  send: Send
  isStopping: () => boolean
}

export function publicRoutes({ config, store, send, isStopping }: PublicParts): RouteOptions[] {
  const { environment, baseUrl, stagingBaseUrl } = config
  const openapi = Buffer.from(renderOpenapi({ production: baseUrl, staging: stagingBaseUrl, here: environment }))

  const readyz = async (): Promise<Answer | Refusal> => {
    if (isStopping()) return { ...notReady, message: 'The service is stopping.' }
    try {
      await store.ping()
      return json({ status: 'ready' })
    } catch {
      return { ...notReady, message: 'The database does not answer.' }
    }
  }

  const answers = {
    // Touches nothing: it answers as long as the process can.
    '/livez': (): Answer => json({ status: 'alive' }),
    '/readyz': readyz,
    '/openapi.json': (): Answer => ({ status: 200, headers: JSON_TYPE, body: openapi }),
  }
  return Object.entries(answers).map(([url, answer]) => ({
    method: ['GET', 'HEAD'],
    url,
    config: { public: true },
    handler: async (request: FastifyRequest, reply: FastifyReply) => send(request, reply, await answer()),
  }))
}

const notReady = { code: 'store_unavailable', headers: ['Retry-After', '1'] } as const

function json(value: object): Answer {
  return { status: 200, headers: JSON_TYPE, body: JSON.stringify(value) }
}

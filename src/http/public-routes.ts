// Routes that need no key: is the process alive, is it ready, and the OpenAPI document.
import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import type { Config } from '../config.ts'
import { Refusal } from '../contract/errors.ts'
import { RETRY_AFTER } from '../contract/limits.ts'
import { renderOpenapi } from '../contract/openapi.ts'
import { type Store, StoreBusy } from '../store/store.ts'
import { jsonContent } from './answer.ts'
import type { Answer } from './call.ts'

interface PublicParts {
  config: Config
  store: Store
  answer: (request: FastifyRequest, reply: FastifyReply, result: Answer | Refusal) => void
  isStopping: () => boolean
}

export function publicRoutes({ config, store, answer, isStopping }: PublicParts): RouteOptions[] {
  const { environment, baseUrl, stagingBaseUrl } = config
  const openapi = jsonContent(renderOpenapi({ production: baseUrl, staging: stagingBaseUrl, here: environment }))

  const readyz = async (): Promise<Answer | Refusal> => {
    if (isStopping()) return notReady('The service is stopping.')
    try {
      await store.ping()
      return json({ status: 'ready' })
    } catch (error) {
      return notReady(error instanceof StoreBusy ? 'All connections to the database are busy.' : 'The database does not answer.')
    }
  }

  const results = {
    // Touches nothing: it answers as long as the process can.
    '/livez': (): Answer => json({ status: 'alive' }),
    '/readyz': readyz,
    '/openapi.json': (): Answer => ({ status: 200, ...openapi }),
  }
  return Object.entries(results).map(([url, result]) => ({
    method: ['GET', 'HEAD'],
    url,
    config: { public: true },
    handler: async (request: FastifyRequest, reply: FastifyReply) => answer(request, reply, await result()),
  }))
}

function notReady(message: string): Refusal {
  return new Refusal('service_unavailable', message, ['Retry-After', String(RETRY_AFTER.notReady)])
}

function json(value: object): Answer {
  return { status: 200, ...jsonContent(JSON.stringify(value)) }
}

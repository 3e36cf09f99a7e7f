// Routes that need no key: is the process alive, is it ready, and the OpenAPI document.
import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import type { Config } from '../config.ts'
import type { Refusal } from '../contract/errors.ts'
import { renderOpenapi } from '../contract/openapi.ts'
import { jsonContent } from './answer.ts'
import type { Answer } from './call.ts'
import type { Health } from './health.ts'

interface PublicParts {
  config: Config
  health: Health
  answer: (request: FastifyRequest, reply: FastifyReply, result: Answer | Refusal) => void
}

export function publicRoutes({ config, health, answer }: PublicParts): RouteOptions[] {
  const { environment, baseUrl, stagingBaseUrl } = config
  const openapi = jsonContent(renderOpenapi({ production: baseUrl, staging: stagingBaseUrl, here: environment }))

  const results = {
    ...health,
    '/openapi.json': (): Answer => ({ status: 200, ...openapi }),
  }
  return Object.entries(results).map(([url, result]) => ({
    method: ['GET', 'HEAD'],
    url,
    config: { public: true },
    handler: async (request: FastifyRequest, reply: FastifyReply) => answer(request, reply, await result()),
  }))
}

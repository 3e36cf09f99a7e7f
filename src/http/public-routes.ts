// Routes that need no key: is the process alive, is it ready, and the OpenAPI document.
import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import type { Config } from '../config.ts'
import type { Refusal } from '../contract/errors.ts'
import type { Answer } from './call.ts'
import type { Health } from './health.ts'
import { createOpenapiRoute } from './openapi-route.ts'

interface PublicParts {
  config: Config
  health: Health
  answer: (request: FastifyRequest, reply: FastifyReply, result: Answer | Refusal) => void
}

export function publicRoutes({ config, health, answer }: PublicParts): RouteOptions[] {
  const results = {
    ...health,
    '/openapi.json': createOpenapiRoute(config),
  }
  return Object.entries(results).map(([url, result]) => ({
    method: ['GET', 'HEAD'],
    url,
    config: { public: true },
    handler: async (request: FastifyRequest, reply: FastifyReply) => answer(request, reply, await result(request)),
  }))
}

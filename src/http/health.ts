// Liveness and readiness, with the same answers on the public port and on the admin port. The admin port also serves the metrics,
// and stays reachable while the public port is overloaded.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { Refusal } from '../contract/errors.ts'
import { RETRY_AFTER } from '../contract/limits.ts'
import { createServer } from './node-http.ts'
import { jsonContent, type Send } from './answer.ts'
import type { Answer, Result } from './call.ts'
import type { Readiness } from './readiness.ts'
import { requestId } from './request.ts'

export type Health = Record<'/livez' | '/readyz', () => Answer | Promise<Result>>

export function createHealth(readiness: Readiness): Health {
  return {
    // Depends on nothing, so it answers as long as the event loop runs.
    '/livez': () => json({ status: 'alive' }),
    '/readyz': async () => {
      const reason = await readiness()
      return reason === undefined ? json({ status: 'ready' }) : notReady(reason)
    },
  }
}

function notReady(message: string): Refusal {
  return new Refusal('service_unavailable', message, ['Retry-After', String(RETRY_AFTER.notReady)])
}

function json(value: object): Answer {
  return { status: 200, ...jsonContent(JSON.stringify(value)) }
}

export interface AdminParts {
  /** Returns the page that Prometheus reads. */
  metricsPage: () => Promise<string>
  contentType: string
  health: Health
  send: Send
}

/** Creates the server of the admin port: metrics and health checks. */
export function createAdmin({ metricsPage, contentType, health, send }: AdminParts): Server {
  async function answerHealth(path: keyof Health, raw: IncomingMessage, response: ServerResponse): Promise<void> {
    const call = { id: requestId(raw), raw, ip: raw.socket.remoteAddress ?? '', startedAt: performance.now() }
    send(call, response, await health[path]())
  }

  return createServer((request, response) => {
    const path = request.url!
    if (path === '/livez' || path === '/readyz') {
      void answerHealth(path, request, response)
      return
    }
    if (path !== '/metrics') {
      response.writeHead(404).end()
      return
    }
    metricsPage().then(
      (text) => response.writeHead(200, { 'Content-Type': contentType }).end(text),
      () => response.writeHead(500).end(),
    )
  })
}

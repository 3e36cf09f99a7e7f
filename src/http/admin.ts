// The admin port: metrics and health, for those who run the service.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { createServer } from '../node-http.ts'
import type { Send } from './answer.ts'
import type { Health } from './health.ts'
import type { Metrics } from './metrics.ts'
import { requestId } from './request-id.ts'

export interface AdminParts {
  metrics: Metrics
  health: Health
  send: Send
}

export function createAdmin({ metrics, health, send }: AdminParts): Server {
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
    metrics.render().then(
      (text) => response.writeHead(200, { 'Content-Type': metrics.contentType }).end(text),
      () => response.writeHead(500).end(),
    )
  })
}

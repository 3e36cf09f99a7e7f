// The admin port: metrics and health, for those who run the service.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { createServer } from '../node-http.ts'
import type { Send } from './answer.ts'
import type { Health } from './health.ts'
import { requestId } from './request-id.ts'

export interface AdminParts {
  /** Gives the page that Prometheus reads. */
  metricsPage: () => Promise<string>
  contentType: string
  health: Health
  send: Send
}

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

// The admin port: metrics, and nothing else.
import type { Server } from 'node:http'
import { createServer } from '../node-http.ts'
import type { Metrics } from './metrics.ts'

export function createAdmin(metrics: Metrics): Server {
  return createServer((request, response) => {
    if (request.url !== '/metrics') {
      response.writeHead(404).end()
      return
    }
    metrics.render().then(
      (text) => response.writeHead(200, { 'Content-Type': metrics.contentType }).end(text),
      () => response.writeHead(500).end(),
    )
  })
}

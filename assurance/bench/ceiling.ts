// The ceiling: bare node:http with a fixed body, without keys or storage. Listens on one port for each answer.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface FixedAnswer {
  status: number
  body: string
}

const answers = JSON.parse(process.argv[2]!) as FixedAnswer[]

const ports = answers.map(async ({ status, body }) => {
  const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }
  const server = createServer((request, response) => {
    const answer = () => response.writeHead(status, headers).end(body)
    // Reads the body first, as any service must before it answers a create.
    if (request.method === 'POST') request.on('end', answer).resume()
    else answer()
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  return (server.address() as AddressInfo).port
})

process.stdout.write(`${JSON.stringify({ ports: await Promise.all(ports) })}\n`)

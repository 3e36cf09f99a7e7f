// Bare node:http over the bare PostgreSQL driver: each request runs one statement of driver-work.ts and answers its
// rows as JSON.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type DriverWork, openDriver } from './driver-work.ts'

const [url, work, poolSize] = process.argv.slice(2) as [string, DriverWork, string]
const { run } = openDriver(url, Number(poolSize))

const server = createServer((request, response) => {
  const answer = async () => {
    const body = JSON.stringify(await run[work]())
    response
      .writeHead(work === 'create' ? 201 : 200, {
        'Content-Type': 'application/json',
        'Content-Length': Buffer.byteLength(body),
      })
      .end(body)
  }
  if (request.method === 'POST') request.on('end', () => void answer()).resume()
  else void answer()
})
server.listen(0, '127.0.0.1', () =>
  process.stdout.write(`${JSON.stringify({ ports: [(server.address() as AddressInfo).port] })}\n`),
)

// A bare node:http server: the baseline of how Node.js alone serves this many connections on this machine.
import { createServer } from 'node:http'

const BODY = '[]'

createServer((_, response) => {
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': BODY.length }).end(BODY)
}).listen(Number(process.argv[2]), '127.0.0.1')

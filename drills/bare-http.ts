// node:http with nothing on top: what this machine and Node.js make of a crowd by themselves.
import { createServer } from 'node:http'

const BODY = '[]'

createServer((_, response) => {
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': BODY.length }).end(BODY)
}).listen(Number(process.argv[2]), '127.0.0.1')

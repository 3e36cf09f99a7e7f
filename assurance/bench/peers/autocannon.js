// Runs autocannon, if wrk is not installed, with the same settings; prints the measurements as one line of JSON.
import autocannon from 'autocannon'

const { base, method, path, key, body, seconds, connections, animals } = JSON.parse(process.argv[2])

function cursor(id) {
  const bytes = Buffer.alloc(9, 1)
  bytes.writeBigInt64BE(BigInt(id), 1)
  return bytes.toString('base64url')
}

const random = () => 1 + Math.floor(Math.random() * animals)
const values = { id: random, page: () => cursor(random()) }
const nextPath = () => path.replace(/{(\w+)}/, (_, name) => values[name]())

/** Of a GET with a body, each tenth request is a POST. */
function requests() {
  const plain = { path, method, ...(method === 'POST' && { body }) }
  if (path.includes('{')) return [{ setupRequest: (request) => ({ ...request, path: nextPath() }) }]
  return body && method === 'GET'
    ? [...Array.from({ length: 9 }, () => plain), { path, method: 'POST', body }]
    : [plain]
}

const result = await autocannon({
  url: base,
  connections,
  duration: seconds,
  method,
  headers: { ...(key && { authorization: `Bearer ${key}` }), ...(body && { 'content-type': 'application/json' }) },
  requests: requests(),
})
process.stdout.write(
  JSON.stringify({
    requests: result.requests.total,
    perSecond: result.requests.total / result.duration,
    p50: result.latency.p50 * 1000,
    p99: result.latency.p99 * 1000,
    refused: result['4xx'] + result['5xx'],
    broken: result.errors + result.timeouts,
  }),
)

// Runs autocannon, if wrk is not installed, with the same settings; prints the measurements as one line of JSON.
import autocannon from 'autocannon'

const { base, method, path, key, body, seconds, connections, firstCursor } = JSON.parse(process.argv[2])
let count = firstCursor

function nextPath() {
  count += 1
  const bytes = Buffer.alloc(9, 1)
  bytes.writeBigInt64BE(BigInt(count), 1)
  return path.replace('{cursor}', bytes.toString('base64url'))
}

const result = await autocannon({
  url: base,
  connections,
  duration: seconds,
  method,
  body,
  headers: { ...(key && { authorization: `Bearer ${key}` }), ...(body && { 'content-type': 'application/json' }) },
  requests: [path.includes('{cursor}') ? { setupRequest: (request) => ({ ...request, path: nextPath() }) } : { path }],
})
process.stdout.write(
  JSON.stringify({
    perSecond: result.requests.total / result.duration,
    p50: result.latency.p50 * 1000,
    p99: result.latency.p99 * 1000,
    refused: result['4xx'] + result['5xx'],
    broken: result.errors + result.timeouts,
  }),
)

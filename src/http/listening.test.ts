// Where a server listens, as its address says.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { addressOf, cutOff, listen } from './listening.ts'
import { createServer } from './node-http.ts'

for (const [host, shown] of [
  ['127.0.0.1', '127.0.0.1'],
  ['::1', '[::1]'],
] as const) {
  it(`A server on ${host} is reached at the address that it names, with its actual port`, async () => {
    const server = createServer((_request, response) => void response.end('here'))
    await listen(server, { host, port: 0, setting: '' })
    try {
      const url = addressOf(server)
      assert.ok(url.startsWith(`http://${shown}:`), url)
      assert.equal(await (await fetch(url)).text(), 'here')
    } finally {
      await cutOff(server)
    }
  })
}

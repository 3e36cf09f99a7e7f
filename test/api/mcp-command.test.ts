// petstore mcp: the official client starts it, as agents do, and reaches a service through it.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pipeline } from 'node:stream/promises'
import { after, before, describe, it } from 'node:test'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { freePort } from '../harness/connections/free-port.ts'
import { collect } from '../harness/programs/processes.ts'
import { BIN, Folder } from '../harness/programs/command.ts'
import { sharePetstore, startPetstore } from '../harness/harness.ts'
import { Agent, REVISIONS, type RpcAnswer } from '../harness/connections/mcp-client.ts'

/** Pieces of 64 KiB without a line feed. */
function* endless(): Generator<Buffer> {
  for (;;) yield Buffer.alloc(65_536, '"')
}

describe('petstore mcp', () => {
  const petstore = sharePetstore()

  for (const mode of Object.keys(REVISIONS) as (keyof typeof REVISIONS)[])
    it(`connects an agent that starts it, by the revision ${REVISIONS[mode]}`, async () => {
      const { url, key } = petstore()
      const env = { PATH: process.env['PATH']!, PETSTORE_API_KEY: key }
      await using agent = await Agent.over(
        new StdioClientTransport({ command: BIN, args: ['mcp', '--url', `${url}/v1/`], env, stderr: 'pipe' }),
        mode,
      )
      const { structuredContent: pet } = await agent.call('createPet', {
        name: 'Rex',
        categoryId: '9223372036854775807',
      })
      assert.equal(pet!['categoryId'], '9223372036854775807')
      const { structuredContent } = await agent.call('listPets', { limit: 1 })
      assert.deepEqual(structuredContent!['items'], [pet])
      assert.equal((await agent.call('getPet', { petId: '7x' })).error!['code'], 'pet_not_found')
    })

  const ping = (id: unknown) => `${JSON.stringify({ jsonrpc: '2.0', id, method: 'ping' })}\n`
  const lines = (stdout: string) =>
    stdout
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as RpcAnswer)

  it('answers all that was asked, writes nothing else, and ends with its input', async () => {
    await using folder = await Folder.create()
    const notification = '{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    const input = `${ping(1)}\n${notification}${ping('two')}no JSON\n${ping(3)}`
    const env = { PETSTORE_API_KEY: petstore().key }
    const { code, stdout, stderr } = await folder.run(['mcp', '--url', petstore().url], { input, env })
    assert.deepEqual([code, stderr], [0, ''])
    const answers = lines(stdout)
    assert.deepEqual(new Set(answers.map(({ id }) => id)), new Set([1, 'two', 3, undefined]))
    assert.equal(answers.find(({ id }) => id === undefined)!.error!.code, -32_700)
  })

  const NEWEST = '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}'
  const LINES: Record<string, [line: string, answer: RegExp]> = {
    null: ['null', /-32600/],
    'a tool that has no text': [
      `{"jsonrpc":"2.0","id":7,"method":"x","params":{"name":{"toString":1},${NEWEST}}}`,
      /"id":7,.*clientCapabilities/,
    ],
    'a method that no header can carry': [
      `{"jsonrpc":"2.0","id":7,"method":"pïng\\n","params":{${NEWEST}}}`,
      /"id":7,.*clientCapabilities/,
    ],
    'invalid params': ['{"jsonrpc":"2.0","id":7,"method":"ping","params":[]}', /"id":7,.*params that are an object/],
    'U+2028 in a text': ['{"jsonrpc":"2.0","id":"\u2028","method":"ping"}', /"id":"\u2028","result":{}/],
  }
  it('passes on a line that is odd, and goes on', async () => {
    await using folder = await Folder.create()
    const env = { PETSTORE_API_KEY: petstore().key }
    const input = Object.values(LINES).map(([line]) => `${line}\n${ping('after')}`)
    const { code, stdout, stderr } = await folder.run(['mcp', '--url', `${petstore().url}/v1/mcp`], {
      input: input.join(''),
      env,
    })
    assert.deepEqual([code, stderr], [0, ''])
    const answers = stdout.split('\n')
    for (const [nth, [what, [, answer]]] of Object.entries(LINES).entries()) {
      assert.match(answers[2 * nth]!, answer, what)
      assert.match(answers[2 * nth + 1]!, /"id":"after","result"/, what)
    }
  })

  it('passes on bytes as they are: a text that is no UTF-8 is refused, not stored with other characters', async () => {
    await using folder = await Folder.create()
    const env = { PETSTORE_API_KEY: petstore().key }
    const params = { name: 'createPet', arguments: { name: 'Zoë', categoryId: 1 } }
    const line = `${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })}\n`
    const input = Buffer.concat([Buffer.from(line, 'latin1'), Buffer.from(line)])
    const { stdout } = await folder.run(['mcp', '--url', petstore().url], { input, env })
    assert.match(stdout, /^{.*-32700.*not valid UTF-8.*\n{.*"structuredContent":{.*"name":"Zoë"/)
  })

  it('sends a request at a time, in order, also to a service that takes few connections', async () => {
    await using limited = await startPetstore({ env: { PETSTORE_MAX_CONNECTIONS: '2' } })
    await using folder = await Folder.create()
    const ids = Array.from({ length: 500 }, (_, id) => id)
    const env = { PETSTORE_API_KEY: limited.key }
    const input = ids.map(ping).join('')
    const { stdout, stderr } = await folder.run(['mcp', '--url', limited.url], { input, env })
    assert.equal(stderr, '')
    const answered = lines(stdout).filter(({ result }) => result !== undefined)
    assert.deepEqual(
      answered.map(({ id }) => id),
      ids,
    )
  })

  const other = createServer(({ url }, response) => {
    if (url === '/endless/mcp') void pipeline(endless, response).catch(() => {})
    else response.end()
  })
  before(async () => {
    await once(other.listen(0, '127.0.0.1'), 'listening')
  })
  after(() => other.close())
  const otherUrl = () => `http://127.0.0.1:${(other.address() as AddressInfo).port}`

  const FAILURES: Record<string, [url: () => Promise<string> | string, key: () => string, reason: RegExp]> = {
    'does not answer': [
      async () => `http://127.0.0.1:${await freePort()}`,
      () => petstore().key,
      /\/mcp: .*ECONNREFUSED/,
    ],
    'answers nothing': [otherUrl, () => petstore().key, /answers 200: $/m],
    'answers without end': [
      () => `${otherUrl()}/endless`,
      () => petstore().key,
      /answers 200 with more than 4096 KiB$/m,
    ],
    'refuses the key': [
      () => petstore().url,
      () => 'pets_test_nonsense',
      /answers 401: .*The key does not have the form/,
    ],
    'is another one': [() => `${petstore().url}/nothing`, () => petstore().key, /answers 404: .*There is nothing at/],
  }
  for (const [what, [url, key, reason]] of Object.entries(FAILURES))
    it(`tells the agent and the person if the service ${what}`, async () => {
      await using folder = await Folder.create()
      const env = { PETSTORE_API_KEY: key() }
      const input = `{"jsonrpc":"2.0","id":9223372036854775807,"method":"ping"}\n{"jsonrpc":"2.0","method":"x"}\n`
      const { code, stdout, stderr } = await folder.commands.run(['mcp', '--url', await url()], { input, env })
      assert.equal(code, 0)
      assert.ok(stdout.startsWith('{"jsonrpc":"2.0","id":9223372036854775807,"error":{"code":-32603,'), stdout)
      const [answer, ...more] = lines(stdout)
      assert.match(answer!.error!.message, reason)
      assert.deepEqual(more, [])
      assert.match(stderr, reason)
      assert.doesNotMatch(stdout + stderr, /pets_test_\w{9}/)
    })

  it('refuses a message without end in bounded memory, and goes on', async () => {
    await using folder = await Folder.create()
    const child = folder.start(['mcp', '--url', otherUrl()], { env: { PETSTORE_API_KEY: 'x' } })
    const ended = collect(child)
    await pipeline(endless().take(4000), child.stdin!, { end: false })
    const kibibytes = Number(/VmHWM:\s*(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))![1])
    child.stdin!.end(`\n${ping(2)}`)
    const [tooLong, next] = lines((await ended).stdout)
    assert.match(tooLong!.error!.message, /^The message has more than 4096 KiB; it was not sent\.$/)
    assert.equal(next!.id, 2)
    assert.ok(kibibytes < 250 * 1024, `${kibibytes} KiB`)
  })

  it('needs an address and a key, which is never in the process list', async () => {
    await using folder = await Folder.create()
    const { commands } = folder
    const env = { PETSTORE_API_KEY: 'x' }
    await commands.refused(2, 'mcp', /Name the address of the service, with --url/, { env })
    await commands.refused(2, 'mcp --url nonsense', /--url ADDRESS/, { env })
    await commands.refused(2, 'mcp --url http://me:secret@127.0.0.1', /--url ADDRESS/, { env })
    for (const key of ['', 'pets_test_\nx', '“pets_test_x”'])
      await commands.refused(2, 'mcp --url http://127.0.0.1', /Set PETSTORE_API_KEY to an API key/, {
        env: { PETSTORE_API_KEY: key },
      })
    await commands.refused(2, 'mcp --url http://127.0.0.1 --key x', /mcp has no option --key/, { env })
  })
})

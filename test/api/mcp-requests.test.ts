// Requests to /mcp as no client sends them, and what the protocol demands of the answers.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { RawConnection } from '../harness/connections/raw-http.ts'
import { BODY_LIMIT } from '../../src/contract/limits.ts'
import { OPERATIONS } from '../../src/contract/operations.ts'
import { expectError, sharePetstore, startPetstore } from '../harness/harness.ts'
import { post } from '../harness/connections/mcp-client.ts'

const NEWEST = '2026-07-28'
const META = {
  'io.modelcontextprotocol/protocolVersion': NEWEST,
  'io.modelcontextprotocol/clientCapabilities': {},
}
const meta = (changed: object = {}) => ({ _meta: { ...META, ...changed } })
const mirrored = (method: string, own: Record<string, string> = {}) => ({
  'MCP-Protocol-Version': NEWEST,
  'Mcp-Method': method,
  ...own,
})
const CALL = { name: 'listPets', ...meta() }

describe('POST /mcp', () => {
  const petstore = sharePetstore()

  type Case = [message: string | object, headers: Record<string, string>, status: number, expected: RegExp]
  const ANSWERS: Record<string, Case> = {
    'a ping': [{ id: 7, method: 'ping' }, {}, 200, /^{"jsonrpc":"2.0","id":7,"result":{}}$/],
    'an id of text': [{ id: 'a"b', method: 'ping' }, {}, 200, /"id":"a\\"b"/],
    'the largest id': [
      '{"jsonrpc":"2.0","id":9223372036854775807,"method":"ping"}',
      {},
      200,
      /"id":9223372036854775807,/,
    ],
    'a larger id': [
      '{"jsonrpc":"2.0","id":9223372036854775808,"method":"ping"}',
      {},
      400,
      /-32600.*an id that is text or an int64/,
    ],
    'an id of null': [{ id: null, method: 'ping' }, {}, 400, /-32600/],
    'a huge exponent': ['{"jsonrpc":"2.0","id":1e999999999,"method":"ping"}', {}, 400, /-32600/],
    'a notification': [{ method: 'notifications/initialized' }, {}, 202, /^$/],
    'no body': ['', {}, 400, /-32700.*body is missing/],
    'a batch': ['[{"jsonrpc":"2.0","id":1,"method":"ping"}]', {}, 400, /-32600.*no batch/],
    'no method, with the id': [{ id: 1 }, {}, 400, /"id":1,"error":{"code":-32600.*a method/],
    'params as a list': [{ id: 1, method: 'ping', params: [] }, {}, 400, /"id":1,.*params that are an object/],
    'an unknown method': [{ id: 1, method: 'resources/list' }, {}, 200, /-32601,"message":"The service has no method/],
    'an unknown tool': [{ id: 1, method: 'tools/call', params: { name: 'toString' } }, {}, 200, /-32602.*Unknown tool/],
    'arguments as a list': [
      { id: 1, method: 'tools/call', params: { name: 'listPets', arguments: [] } },
      {},
      200,
      /-32602.*arguments must be an object/,
    ],
    'arguments that are nested deep': [
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"createPet","arguments":{"x":${'['.repeat(8000)}${']'.repeat(8000)}}}}`,
      {},
      400,
      /-32700.*nested too deep/,
    ],
    'a field of every object': [
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"createPet","arguments":{"__proto__":{"name":"x"}}}}',
      {},
      200,
      /invalid_parameter.*There is no argument .*__proto__/,
    ],
    'an initialization': [
      { id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25' } },
      {},
      200,
      /"protocolVersion":"2025-11-25","serverInfo":{"name":"petstore"/,
    ],
    'an initialization by an unknown revision': [
      { id: 1, method: 'initialize', params: { protocolVersion: '2024-11-05' } },
      {},
      200,
      /"protocolVersion":"2025-11-25"/,
    ],
    'an unknown revision': [
      { id: 1, method: 'ping' },
      { 'MCP-Protocol-Version': '1900-01-01' },
      400,
      /-32022.*"supported":\["2026-07-28","2025-11-25"\],"requested":"1900-01-01"/,
    ],
    'the newest revision': [
      { id: 1, method: 'server/discover', params: meta() },
      mirrored('server/discover'),
      200,
      /"supportedVersions":\["2026-07-28".*"ttlMs":\d+.*"resultType":"complete".*serverInfo/,
    ],
    'the newest revision only in a header': [
      { id: 1, method: 'tools/list' },
      mirrored('tools/list'),
      400,
      /-32602.*_meta/,
    ],
    'no capabilities': [
      { id: 1, method: 'tools/list', params: meta({ 'io.modelcontextprotocol/clientCapabilities': undefined }) },
      mirrored('tools/list'),
      400,
      /-32602.*clientCapabilities/,
    ],
    'no header': [
      { id: 1, method: 'tools/list', params: meta() },
      {},
      400,
      /-32020.*MCP-Protocol-Version .*got nothing/,
    ],
    'another method in the header': [
      { id: 1, method: 'tools/list', params: meta() },
      mirrored('ping'),
      400,
      /-32020.*Mcp-Method must be \\"tools\/list\\", as in the body, got \\"ping\\"/,
    ],
    'another tool in the header': [
      { id: 1, method: 'tools/call', params: CALL },
      mirrored('tools/call', { 'Mcp-Name': 'createPet' }),
      400,
      /-32020.*Mcp-Name/,
    ],
    'the tool in the header': [
      { id: 1, method: 'tools/call', params: CALL },
      mirrored('tools/call', { 'Mcp-Name': 'listPets' }),
      200,
      /structuredContent/,
    ],
    'a method that the newest revision dropped': [
      { id: 1, method: 'ping', params: meta() },
      mirrored('ping'),
      404,
      /-32601/,
    ],
    'a session of another server': [
      { id: 1, method: 'ping' },
      { 'Mcp-Session-Id': 'x', 'Last-Event-ID': '1' },
      200,
      /{}/,
    ],
  }
  for (const [what, [message, headers, status, expected]] of Object.entries(ANSWERS))
    it(`answers ${what} as the protocol says`, async () => {
      const { response, text } = await post(petstore(), message, headers)
      assert.equal(response.status, status, text)
      assert.match(text, expected)
      if (text !== '') assert.equal(response.headers.get('content-type'), 'application/json')
      assert.equal(response.headers.get('mcp-session-id'), null)
    })

  it('has the limit and the headers of every body', async () => {
    const large = await post(petstore(), ' '.repeat(BODY_LIMIT + 1))
    assert.match(large.text, /^{"code":"body_too_large"/)
    const other = await post(petstore(), { id: 1, method: 'ping' }, { 'Content-Type': 'text/plain' })
    assert.match(other.text, /^{"code":"unsupported_content_type"/)
  })

  it('asks for the key before the content, and reads a body that comes in pieces', async () => {
    using connection = new RawConnection(petstore().url)
    const body = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
    const head = (key: string) =>
      `POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\n` +
      `Expect: 100-continue\r\nContent-Length: ${body.length}\r\n\r\n`
    connection.send(head(petstore().key))
    assert.equal((await connection.answer()).status, 100)
    connection.send(body.slice(0, 9))
    connection.send(body.slice(9))
    assert.equal((await connection.answer()).status, 200)
    connection.send(head('nonsense'))
    assert.equal((await connection.answer()).status, 401)
  })

  it('is the only method', async () => {
    for (const method of ['GET', 'DELETE', 'PUT']) {
      const response = await fetch(`${petstore().url}/mcp`, { method, headers: { Accept: 'text/event-stream' } })
      assert.equal(response.headers.get('allow'), 'OPTIONS, POST')
      await expectError(response, 'method_not_allowed')
    }
    assert.equal((await fetch(`${petstore().url}/mcp`, { method: 'HEAD' })).status, 405)
    const options = await fetch(`${petstore().url}/mcp`, { method: 'OPTIONS' })
    assert.deepEqual([options.status, options.headers.get('allow')], [204, 'OPTIONS, POST'])
  })
})

describe('A page that calls /mcp', () => {
  const petstore = sharePetstore({ env: { PETSTORE_STAGING_BASE_URL: 'https://shop.example/v1' } })
  const status = async (origin: string, method = 'POST', path = '/mcp', host = new URL(petstore().url).host) => {
    using connection = new RawConnection(petstore().url)
    const body = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
    connection.send(
      `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\nOrigin: ${origin}\r\nAuthorization: Bearer ${petstore().key}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    return await connection.answer()
  }

  it('is refused if it is of another site, also by DNS rebinding, whatever the method', async () => {
    const FOREIGN = [
      'https://evil.example',
      'http://shop.example',
      'https://shop.example:8443',
      'https://shop.example.evil.example',
      'http://localhost.evil.example',
      'http://127.0.0.1.evil.example',
      'http://203.0.113.7',
      'null',
      'file://',
      'evil://localhost',
      'https://evil.example, https://shop.example',
    ]
    for (const origin of FOREIGN) assert.equal((await status(origin)).status, 403, origin)
    assert.equal((await status('http://evil.example', 'POST', '/mcp', 'evil.example')).status, 403)
    for (const method of ['GET', 'OPTIONS', 'DELETE'])
      assert.equal((await status('https://evil.example', method)).status, 403, method)
    assert.equal((await status('https://evil.example', 'POST', '/%6dcp?x')).status, 403)
  })

  it('is served if it is of the base address or of the machine of the browser', async () => {
    const { host } = new URL(petstore().url)
    const OWN = [
      'https://shop.example',
      'http://localhost:6274',
      'http://a.localhost',
      'http://[::1]:1',
      `http://${host}`,
    ]
    for (const origin of OWN) assert.equal((await status(origin)).status, 200, origin)
  })

  it('gets the error as JSON even if it prefers HTML', async () => {
    const response = await fetch(`${petstore().url}/mcp`, { method: 'POST', headers: { Accept: 'text/html' } })
    await expectError(response, 'missing_api_key')
  })
})

describe('The tools', () => {
  it('are the operations until they are removed; a call afterwards says what to use instead', async () => {
    let now = Date.UTC(2030, 11, 4, 23, 59)
    await using petstore = await startPetstore({ clock: () => now })
    const names = async () =>
      (await post(petstore, { id: 1, method: 'tools/list' })).answer.result!.tools.map(({ name }) => name)
    assert.deepEqual(
      await names(),
      OPERATIONS.map(({ id }) => id),
    )
    now = Date.UTC(2030, 11, 5)
    assert.deepEqual(
      await names(),
      OPERATIONS.filter(({ deprecation }) => deprecation === undefined).map(({ id }) => id),
    )
    const { text } = await post(petstore, {
      id: 1,
      method: 'tools/call',
      params: { name: 'getPet', arguments: { petId: 1 } },
    })
    assert.match(text, /operation_removed.*"isError":true/)
  })
})

describe('A fault while a tool is called', () => {
  it('is a tool error with the headers of the checks before it, and the process goes on', async () => {
    await using petstore = await startPetstore({ chores: false, env: { PETSTORE_RATE_LIMIT: '9/3600' } })
    const { pets } = petstore.store
    const list = pets.list.bind(pets)
    pets.list = (): Promise<never> => Promise.reject(new Error('a planted fault'))
    const call = { id: 1, method: 'tools/call', params: { name: 'listPets' } }
    const { response, text } = await post(petstore, call)
    assert.match(text, /internal_error.*"isError":true/)
    assert.match(response.headers.get('ratelimit') ?? '', /r=8;/)
    pets.list = list
    assert.match((await post(petstore, call)).text, /"structuredContent":{"items":\[\]}/)
  })
})

describe('A list through a tool', () => {
  it('has what was added before the call, also while an earlier list of the same page is still read', async () => {
    await using petstore = await startPetstore({ chores: false })
    const { pets } = petstore.store
    const list = pets.list.bind(pets)
    const [read, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    // Requests share a reading from the second one of an address on.
    await petstore.call('/pets?limit=1')
    pets.list = (async (...query: Parameters<typeof list>) => {
      pets.list = list
      const page = await list(...query)
      read.resolve()
      await release.promise
      return page
    }) as typeof list
    const earlier = petstore.call('/pets?limit=1')
    await read.promise
    await petstore.add({ name: 'New', categoryId: 1 })
    const call = { id: 1, method: 'tools/call', params: { name: 'listPets', arguments: { limit: 1 } } }
    assert.match((await post(petstore, call)).text, /"structuredContent":{"items":\[{"id":1,"name":"New"/)
    release.resolve()
    await earlier
  })
})

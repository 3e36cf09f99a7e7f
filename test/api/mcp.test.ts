// The operations as tools of the Model Context Protocol: what agents are promised, with the official client.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { OPERATIONS } from '../../src/contract/operations.ts'
import { argumentName, bodySchema, toolsAt } from '../../src/http/mcp/tools.ts'
import { until } from '../harness/until.ts'
import {
  callExample,
  restoreExample,
  countPets,
  describeOnSqlite,
  expectError,
  makeKey,
  sharePetstore,
  startPetstore,
} from '../harness/harness.ts'
import { signedIn } from '../harness/connections/console-client.ts'
import { Agent, post, REVISIONS } from '../harness/connections/mcp-client.ts'
import { isValid, type JsonSchema } from '../harness/openapi-document.ts'

const INT64_MAX = '9223372036854775807'
const DOCUMENT = { components: { schemas: {} } } as never

describeOnSqlite('An agent', (service) => {
  for (const [mode, revision] of Object.entries(REVISIONS)) {
    it(`lists and adds animals, page by page, by the revision ${revision}`, async () => {
      await using agent = await Agent.connect(service(), mode as keyof typeof REVISIONS)
      assert.equal(agent.client.getNegotiatedProtocolVersion(), revision)
      const added: unknown[] = []
      for (const name of ['Rex', 'Ünïcödé 🐕'])
        added.unshift((await agent.call('createPet', { name, categoryId: 3 })).structuredContent)
      const first = await agent.call('listPets', { limit: 1 })
      const { items, nextCursor } = first.structuredContent!
      const second = await agent.call('listPets', { limit: 1, cursor: nextCursor })
      assert.deepEqual([items, second.structuredContent!['items']].flat(), added)
      const all = await agent.call('listPets', { limit: 100 })
      assert.ok(!('nextCursor' in all.structuredContent!), 'the last page')
    })
  }

  it('calls every operation as a tool, with the result that the interface gives', async () => {
    await using agent = await Agent.connect(service())
    await agent.call('createPet', { name: 'Rex', categoryId: 3 })
    for (const operation of OPERATIONS) {
      const required = operation.parameters.filter((parameter) => parameter.required)
      const args = Object.fromEntries(required.map((parameter) => [argumentName(parameter), parameter.example]))
      const { structuredContent } = await agent.call(operation.id, { ...args, ...(operation.body?.example as object) })
      if (operation.method === 'DELETE') await restoreExample(service(), operation)
      const answer = await callExample(service(), operation)
      const direct = answer.status === 204 ? {} : ((await answer.json()) as object)
      const expected: Record<string, unknown> = Array.isArray(direct) ? { items: direct } : { ...direct }
      // Two creates have two ids.
      if (operation.method === 'POST') expected['id'] = structuredContent!['id']
      assert.deepEqual(structuredContent, { ...structuredContent, ...expected }, operation.id)
    }
  })

  it('gets int64 digit for digit, as text where it would round a number', async () => {
    await using agent = await Agent.connect(service())
    const { structuredContent: pet } = await agent.call('createPet', { name: 'Max', categoryId: INT64_MAX })
    assert.equal(pet!['categoryId'], INT64_MAX)
    const { text } = await post(service(), {
      id: 1,
      method: 'tools/call',
      params: { name: 'getPet', arguments: { petId: String(pet!['id']) } },
    })
    assert.ok(text.includes(`"categoryId":"${INT64_MAX}"`), text)
    const safe = await agent.call('createPet', { name: 'Min', categoryId: '-9007199254740991' })
    assert.equal(safe.structuredContent!['categoryId'], Number.MIN_SAFE_INTEGER)
  })

  it('is told to send text where its client may have rounded a number', async () => {
    const before = await countPets(service())
    const args = [
      ['createPet', '{"name":"Rex","categoryId":9007199254740993}'],
      ['createPet', '{"name":"Rex","categoryId":3,"idempotencyKey":9007199254740993}'],
      ['getPet', '{"petId":-9007199254740992}'],
    ] as const
    for (const [name, json] of args) {
      const { text } = await post(
        service(),
        `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${name}","arguments":${json}}}`,
      )
      assert.match(text, /"isError":true/)
      assert.match(text, /The argument \w+ must be sent as text, since a client may have rounded/)
    }
    assert.equal(await countPets(service()), before)
  })

  it('adds nothing twice if it repeats a call with its idempotency key, which /v1 knows too', async () => {
    await using agent = await Agent.connect(service())
    const before = await countPets(service())
    const rex = { name: 'Rex', categoryId: 3 }
    const once = await agent.call('createPet', { ...rex, idempotencyKey: 'agent-1' })
    assert.deepEqual(await agent.call('createPet', { ...rex, idempotencyKey: 'agent-1' }), once)
    const replayed = await service().add(rex, { 'Idempotency-Key': '"agent-1"' })
    assert.equal(replayed.headers.get('idempotent-replayed'), 'true')
    assert.equal(await countPets(service()), before + 1)
    const { error } = await agent.call('createPet', { name: 'Tom', categoryId: 3, idempotencyKey: 'agent-1' })
    assert.equal(error!['code'], 'idempotency_key_reused')
  })

  it('may send null for what it leaves out', async () => {
    await using agent = await Agent.connect(service())
    const added = await agent.call('createPet', { name: 'Rex', categoryId: 3, status: null, idempotencyKey: null })
    assert.equal(added.structuredContent?.['status'], 'available')
    const list = await agent.call('listPets', { limit: 1, status: null, cursor: null })
    assert.deepEqual(list.structuredContent?.['items'], [added.structuredContent])
    const { text } = await post(service(), {
      id: 1,
      method: 'tools/call',
      params: { name: 'listPets', arguments: null },
    })
    assert.match(text, /"structuredContent":{"items":\[{"id"/)
  })

  it('adds an animal also where a list at the same address is cached', async () => {
    for (let times = 0; times < 3; times += 1) await service().call('/pets?limit=1')
    for (let times = 0; times < 3; times += 1) await service().call('/pets')
    await using agent = await Agent.connect(service())
    assert.equal((await agent.call('createPet', { name: 'New', categoryId: 1 })).structuredContent!['name'], 'New')
    const list = (await (await service().call('/pets?limit=1')).json()) as { name: string }[]
    assert.equal(list[0]!.name, 'New')
    assert.deepEqual((await agent.call('listPets', { limit: 1 })).structuredContent!['items'], list)
  })

  const MENDED: Record<string, [tool: string, args: object, code: string, message: RegExp]> = {
    'a missing field': ['createPet', { categoryId: 3 }, 'invalid_pet', /^name is missing/],
    'null for a field that is required': [
      'createPet',
      { name: null, categoryId: 3 },
      'invalid_pet',
      /^name must .* null/,
    ],
    'null as an id': ['getPet', { petId: null }, 'invalid_parameter', /argument petId .* got null/],
    'no arguments': ['createPet', {}, 'invalid_pet', /categoryId is missing/],
    'text that is no int64': ['createPet', { name: 'x', categoryId: '1.5' }, 'invalid_pet', /got "1\.5"/],
    'a limit': ['listPets', { limit: 1000 }, 'invalid_parameter', /from 1 to 100 in decimal digits, got "1000"/],
    'a list as a limit': ['listPets', { limit: [1] }, 'invalid_parameter', /argument limit must be text or an integer/],
    'a cursor': ['listPets', { cursor: 'x&limit=1' }, 'invalid_parameter', /parameter cursor .* got "x&limit=1"/],
    'a missing id': ['getPet', {}, 'invalid_parameter', /argument petId must be text or an integer, got nothing/],
    'an object as an id': ['getPet', { petId: { toString: 1 } }, 'invalid_parameter', /got an object/],
    'an empty id': ['getPet', { petId: '' }, 'invalid_parameter', /argument petId/],
    'a path as an id': ['getPet', { petId: '../pets' }, 'pet_not_found', /"\.\.\/pets"/],
    'a lone surrogate': ['getPet', { petId: '\uD800' }, 'pet_not_found', /No animal/],
    'another animal': ['getPet', { petId: INT64_MAX }, 'pet_not_found', new RegExp(INT64_MAX)],
    'a key that no header can carry': [
      'createPet',
      { name: 'x', categoryId: 1, idempotencyKey: 'a\u0000b' },
      'invalid_parameter',
      /header can carry/,
    ],
    'a misspelt argument': [
      'createPet',
      { name: 'x', categoryId: 1, 'idempotency-key': 'a' },
      'invalid_parameter',
      /no argument "idempotency-key"; createPet takes idempotencyKey, name/,
    ],
    'an empty key': [
      'createPet',
      { name: 'x', categoryId: 1, idempotencyKey: '' },
      'invalid_idempotency_key',
      /1 to 255/,
    ],
  }
  it('is told what to mend, by code, message and status', async () => {
    await using agent = await Agent.connect(service(), 'legacy')
    for (const [what, [tool, args, code, message]] of Object.entries(MENDED)) {
      const { error } = await agent.call(tool, args as Record<string, unknown>)
      assert.deepEqual(Object.keys(error!), ['code', 'message', 'status'], what)
      assert.equal(error!['code'], code, what)
      assert.match(String(error!['message']), message, what)
    }
  })

  it('is counted, logged and shown as the caller of the operation, with its status', async () => {
    const { apiKey, key } = await makeKey(service())
    await using agent = await Agent.connect({ url: service().url, key })
    await agent.call('createPet', { name: 'Rex', categoryId: 3 })
    await agent.call('createPet', { name: '', categoryId: 3 })
    const { accounts } = service().store
    // Each process writes what it has counted by itself.
    await until(async () => {
      const counted = await accounts.usageSince(apiKey.accountId, 0)
      const failures = await accounts.failedRequests(apiKey.accountId, 1)
      const used = counted.map(({ operation, status }) => `${operation} ${status}`)
      return used.toSorted().join() === 'createPet 201,createPet 400' && failures.length === 1
    }, 'both calls are written')
    const [failed] = await accounts.failedRequests(apiKey.accountId, 1)
    assert.deepEqual([failed!.operation, failed!.status, failed!.code], ['createPet', 400, 'invalid_pet'])
    const line = service().logged.find(({ requestId }) => requestId === failed!.requestId)
    if (line !== undefined) assert.deepEqual([line['path'], line['operation']], ['/mcp', 'createPet'])
  })

  it('has no failed requests from connecting, though older clients ask for a stream that the service does not have', async () => {
    const { apiKey, key } = await makeKey(service())
    await using agent = await Agent.connect({ url: service().url, key }, 'legacy')
    await agent.call('getPet', { petId: '7x' })
    const failed = () => service().store.accounts.failedRequests(apiKey.accountId, 5)
    await until(async () => (await failed()).some(({ operation }) => operation === 'getPet'), 'the call is written')
    assert.deepEqual(
      (await failed()).map(({ operation }) => operation),
      ['getPet'],
    )
  })

  it('gets the 401 of the interface, which its account sees if the key was revoked', async () => {
    const { apiKey, key } = await makeKey(service())
    await service().accounts.revokeKey(apiKey, 'command line')
    for (const secret of [key, 'nonsense']) {
      const { response } = await post({ url: service().url, key: secret }, { id: 1, method: 'tools/list' })
      const direct = await service().call('/pets', { headers: { Authorization: `Bearer ${secret}` } })
      assert.equal(response.status, 401)
      assert.equal(response.headers.get('www-authenticate'), direct.headers.get('www-authenticate'))
    }
    await until(async () => {
      const failed = await service().store.accounts.failedRequests(apiKey.accountId, 5)
      return failed.some(({ operation, code }) => operation === 'POST /mcp' && code === 'revoked_api_key')
    }, 'the refusal is written')
  })

  it('can rehearse a failure on staging, also a lost answer', async () => {
    await using unavailable = await Agent.connect(service(), 'auto', { 'Petstore-Rehearse': '503' })
    assert.equal((await unavailable.call('listPets')).error!['code'], 'service_unavailable')
    const before = await countPets(service())
    const params = { name: 'createPet', arguments: { name: 'Lost', categoryId: 1 } }
    const lost = post(
      service(),
      { id: 1, method: 'tools/call', params },
      { 'Petstore-Rehearse': 'disconnect-after-commit' },
    )
    await assert.rejects(lost, /fetch failed/)
    assert.equal(await countPets(service()), before + 1)
  })
})

describe('A tool', () => {
  const tools = toolsAt(Date.UTC(2026, 10, 20)) as {
    name: string
    description: string
    inputSchema: JsonSchema & { required: string[]; properties: Record<string, JsonSchema> }
    outputSchema: JsonSchema
    annotations: Record<string, boolean>
  }[]
  const VALUES = [undefined, null, true, '', 'x', 'available', 0, 1, 100, 101, 1.5, [], {}, 'x'.repeat(256)]

  for (const operation of OPERATIONS) {
    const tool = tools.find(({ name }) => name === operation.id)!

    it(`takes the parameters and the fields of the body of its operation, and no others: ${operation.id}`, () => {
      const parameters = operation.parameters.map(argumentName)
      const fields = Object.keys(bodySchema(operation).properties)
      const { properties, required } = tool.inputSchema
      assert.deepEqual(Object.keys(properties).toSorted(), [...parameters, ...fields].toSorted(), 'no two share a name')
      const needed = operation.parameters.filter((parameter) => parameter.required).map(argumentName)
      assert.deepEqual(required.toSorted(), [...needed, ...bodySchema(operation).required].toSorted())
    })

    it(`accepts the values that its operation accepts, and an int64 as text: ${operation.id}`, () => {
      const schemas = new Map<string, object>(Object.entries(bodySchema(operation).properties))
      for (const parameter of operation.parameters) schemas.set(argumentName(parameter), parameter.schema)
      for (const [name, schema] of schemas) {
        const own = tool.inputSchema.properties[name]!
        const isInt64 = 'format' in schema && schema.format === 'int64'
        for (const value of VALUES)
          assert.equal(
            isValid(DOCUMENT, own, value),
            isValid(DOCUMENT, schema as JsonSchema, value),
            `${name}: ${JSON.stringify(value)}`,
          )
        for (const [text, isExact] of [
          [INT64_MAX, true],
          ['-1', true],
          ['01', false],
          ['1e2', false],
        ] as const)
          if (isInt64) assert.equal(isValid(DOCUMENT, own, text), isExact, text)
        if (isInt64) assert.ok(!isValid(DOCUMENT, own, 2 ** 53), 'a number that may have been rounded')
      }
    })

    it(`returns what its operation returns: ${operation.id}`, () => {
      const { content } = operation.success
      if (content === undefined) return assert.equal(tool.outputSchema, undefined)
      const { example } = content
      const result = Array.isArray(example) ? { items: example, nextCursor: 'x' } : (example as object)
      assert.ok(isValid(DOCUMENT, tool.outputSchema, result))
      const int64 = JSON.parse(JSON.stringify(result).replace(/"id":\d+/, `"id":"${INT64_MAX}"`)) as object
      assert.ok(isValid(DOCUMENT, tool.outputSchema, int64))
      assert.ok(!isValid(DOCUMENT, tool.outputSchema, []))
    })

    it(`says whether it reads, repeats or destroys, and that it is deprecated: ${operation.id}`, () => {
      const { method, repeat, deprecation } = operation
      assert.deepEqual(tool.annotations, {
        readOnlyHint: method === 'GET',
        destructiveHint: !['GET', 'POST'].includes(method),
        idempotentHint: ['safe', 'idempotent'].includes(repeat),
        openWorldHint: false,
      })
      assert.doesNotMatch(JSON.stringify(tool), /Link|rel=|(?:GET|POST) \//, 'words of HTTP')
      if (deprecation !== undefined) assert.match(tool.description, /Use `listPets` with a `status` filter/)
      assert.equal(/Deprecated: to be removed on 5 December 2030/.test(tool.description), deprecation !== undefined)
      assert.doesNotMatch(JSON.stringify(tool), /Idempotency-Key/)
    })
  }
})

describe('The tools', () => {
  it('share the rate limit of the account with /v1; a bad call counts, and a list of tools does not', async () => {
    // In one process, also in a run with workers: each counts for itself.
    await using petstore = await startPetstore({ env: { PETSTORE_RATE_LIMIT: '5/3600', PETSTORE_WORKERS: '1' } })
    await using agent = await Agent.connect(petstore, 'legacy')
    for (let times = 0; times < 5; times += 1) await agent.client.listTools()
    assert.ok((await agent.call('listPets')).structuredContent)
    for (const bad of [{ limit: 0 }, { limit: [] }, { limits: 1 }])
      assert.equal((await agent.call('listPets', bad)).error!['code'], 'invalid_parameter')
    assert.equal((await petstore.call('/pets')).status, 200)
    const { response, text } = await post(petstore, { id: 1, method: 'tools/call', params: { name: 'listPets' } })
    assert.match(text, /rate_limited.*Try again in \d+ s.*"isError":true/)
    assert.match(response.headers.get('ratelimit')!, /r=0;/)
    await expectError(await petstore.call('/pets'), 'rate_limited')
  })
})

describe('The page of a new key', () => {
  const petstore = sharePetstore()

  it('shows a configuration with which an agent connects', async () => {
    const { body } = await (await signedIn(petstore())).generateKey('agent')
    const [, json = ''] = /<code data-copy>({.*?})<\/code>/s.exec(body) ?? []
    const { petstore: remote } = (
      JSON.parse(json.replaceAll(/&(?:quot|#34);/g, '"')) as {
        mcpServers: { petstore: { type: string; url: string; headers: { Authorization: string } } }
      }
    ).mcpServers
    assert.equal(remote.type, 'http')
    const at = { url: remote.url.replace(/\/mcp$/, ''), key: remote.headers.Authorization.replace('Bearer ', '') }
    await using agent = await Agent.connect(at)
    assert.ok((await agent.call('listPets')).structuredContent)
  })
})

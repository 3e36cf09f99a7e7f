// Section 9 of the specification: the version in the address, the deprecation in the document, the two environments.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Addresses, openapiDocument } from '../../src/contract/openapi.ts'
import type { Environment } from '../../src/contract/environments.ts'
import { OPERATIONS } from '../../src/contract/operations.ts'
import { expectError, startPetstore } from '../harness/harness.ts'
import { RawConnection } from '../harness/connections/raw-http.ts'

interface Document {
  info: { version: string }
  servers: { url: string; description: string }[]
  paths: Record<string, Record<string, { operationId: string; description: string; deprecated?: boolean }>>
}

const ADDRESSES = {
  PETSTORE_BASE_URL: 'https://pets.example/v1',
  PETSTORE_STAGING_BASE_URL: 'https://v1.staging.pets.example/v1/sub/v1',
}

async function documentOf(env: Record<string, string>): Promise<Document> {
  await using petstore = await startPetstore({ env })
  return (await (await fetch(`${petstore.url}/openapi.json`)).json()) as Document
}

describe('9. Versioning', () => {
  it('says version 1.0.0, whatever the version of the program', async () =>
    assert.equal((await documentOf({})).info.version, '1.0.0'))

  it('flags getPet, and only it, as deprecated; its description names the date and the replacement', async () => {
    const { paths } = await documentOf({})
    const operations = Object.values(paths).flatMap((path) => Object.values(path))
    assert.deepEqual(
      operations.map(({ operationId }) => operationId),
      OPERATIONS.map(({ id }) => id),
    )
    const deprecated = operations.filter((operation) => operation.deprecated)
    assert.deepEqual(
      deprecated.map(({ operationId }) => operationId),
      ['getPet'],
    )
    assert.match(deprecated[0]!.description, /5 December 2030/)
    assert.match(deprecated[0]!.description, /GET \/pets.*status/)
  })
})

describe('9. The two environments', () => {
  it('have the same paths and their own keys', async () => {
    await using production = await startPetstore({ env: { PETSTORE_ENVIRONMENT: 'production' } })
    await using staging = await startPetstore({ env: { PETSTORE_ENVIRONMENT: 'staging' } })
    assert.match(production.key, /^pets_live_[0-9A-Za-z]{36}$/)
    assert.match(staging.key, /^pets_test_[0-9A-Za-z]{36}$/)
    for (const [here, there] of [
      [production, staging],
      [staging, production],
    ] as const) {
      assert.equal((await here.call('/pets')).status, 200)
      await expectError(
        await here.call('/pets', { headers: { Authorization: `Bearer ${there.key}` } }),
        'wrong_environment',
      )
    }
  })

  it('are both listed in the document, this one first', async () => {
    const urls = async (env: Record<string, string>) => (await documentOf(env)).servers.map(({ url }) => url)
    const [live, test] = Object.values(ADDRESSES)
    assert.deepEqual(await urls({ ...ADDRESSES, PETSTORE_ENVIRONMENT: 'production' }), [live, test])
    assert.deepEqual(await urls({ ...ADDRESSES, PETSTORE_ENVIRONMENT: 'staging' }), [test, live])
    assert.match((await urls({ PETSTORE_ENVIRONMENT: 'staging' })).join(), /^http:\/\/127\.0\.0\.1:\d+\/v1$/)
    assert.match(
      (await urls({ PETSTORE_ENVIRONMENT: 'staging', PETSTORE_BASE_URL: live! })).join(),
      /^http:\/\/127\.0\.0\.1:\d+\/v1,https:\/\/pets\.example\/v1$/,
    )
  })

  it('list only what is configured, and their own address first, whichever that is', () => {
    const [production, staging] = Object.values(ADDRESSES)
    const address = 'http://localhost/v1'
    const urls = (environment: Environment, configured: Addresses) =>
      (openapiDocument({ ...configured, here: { environment, address } }) as Document).servers.map(({ url }) => url)
    assert.deepEqual(urls('production', { production }), [production])
    assert.deepEqual(urls('production', { staging }), [address, staging])
    assert.deepEqual(urls('staging', { staging }), [staging])
    assert.deepEqual(urls('staging', { production }), [address, production])
  })

  it('list the address that a client uses only where its name can be believed, else a relative one', async () => {
    await using petstore = await startPetstore()
    for (const [host, expected] of [
      ['localhost:8080', 'http://localhost:8080/v1'],
      ['evil.example', '/v1'],
    ] as const) {
      using connection = new RawConnection(petstore.url)
      connection.send(`GET /openapi.json HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
      const { servers } = JSON.parse((await connection.answer()).body) as Document
      assert.deepEqual(
        servers.map(({ url }) => url),
        [expected],
      )
    }
  })

  it('make every link absolute with their own configured address', async () => {
    for (const [environment, base] of [
      ['production', ADDRESSES.PETSTORE_BASE_URL],
      ['staging', ADDRESSES.PETSTORE_STAGING_BASE_URL],
    ] as const) {
      await using petstore = await startPetstore({ env: { ...ADDRESSES, PETSTORE_ENVIRONMENT: environment } })
      const made = await petstore.add({ name: 'Rex', categoryId: 1 })
      const { id } = (await made.json()) as { id: number }
      assert.equal(made.headers.get('location'), `${base}/pets/${id}`)
      await petstore.add({ name: 'Rex', categoryId: 1 })
      assert.ok((await petstore.call('/pets?limit=1')).headers.get('link')?.startsWith(`<${base}/pets?limit=1&cursor=`))
      const link = (await petstore.call(`/pets/${id}`)).headers.get('link') ?? ''
      assert.ok(link.includes(`<${base}/pets?status=available>; rel="successor-version"`), link)
      assert.ok(link.includes(`<${base.slice(0, -3)}/docs/`), link)
      const help = (await fetch(`${petstore.url}/v1/nothing`)).headers.get('link')
      assert.equal(help, `<${base.slice(0, -3)}/docs/errors#unknown_path>; rel="help"`)
    }
  })

  it('ignore who the request says it was for: links never repeat a Host or forwarded header', async () => {
    await using petstore = await startPetstore()
    await petstore.add({ name: 'Rex', categoryId: 1 })
    const made = await petstore.add(
      { name: 'Rex', categoryId: 1 },
      { 'X-Forwarded-Host': 'evil.example', Forwarded: 'host=evil.example' },
    )
    assert.match(made.headers.get('location') ?? '', /^\/v1\/pets\/\d+$/)
    assert.match((await petstore.call('/pets?limit=1')).headers.get('link') ?? '', /^<\/v1\/pets\?/)
  })
})

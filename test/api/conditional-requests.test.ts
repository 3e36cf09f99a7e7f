// Conditional requests: ETag, If-None-Match and what a cache may keep.
import assert from 'node:assert/strict'
import { before, it } from 'node:test'
import { describeOnSqlite } from '../harness/harness.ts'

describeOnSqlite('Conditional requests', (service) => {
  let id: string
  before(async () => {
    id = /"id":(\d+)/.exec(await (await service().add({ name: 'Rex', categoryId: 1 })).text())![1]!
    await service().add({ name: 'Mittens', categoryId: 1, status: 'sold' })
  })
  const paths = () => ['/pets', '/pets?limit=1', '/pets?status=sold', `/pets/${id}`]
  const ask = (path: string, ifNoneMatch: string, method = 'GET') =>
    service().call(path, { method, headers: { 'If-None-Match': ifNoneMatch } })

  it('have a strong ETag on list and get, and answer 304 without a body to who has the content, with the headers a 200 has', async () => {
    for (const path of paths()) {
      const found = await service().call(path)
      const etag = found.headers.get('etag')!
      assert.match(etag, /^"[\w-]{22}"$/)
      for (const value of [etag, `"a","b" ,W/${etag}`, ' * ']) {
        for (const method of ['GET', 'HEAD']) {
          const response = await ask(path, value, method)
          assert.equal(response.status, 304, `${path} ${value}`)
          assert.equal(await response.text(), '')
          for (const name of ['etag', 'cache-control', 'link'])
            assert.equal(response.headers.get(name), found.headers.get(name))
          assert.equal(response.headers.get('content-type'), null)
        }
      }
      for (const value of ['"other"', etag.replaceAll('"', ''), '', `${etag}x`])
        assert.equal((await ask(path, value)).status, 200, value)
    }
  })

  it('give another ETag as soon as the content is another', async () => {
    const etag = (await service().call('/pets')).headers.get('etag')!
    assert.equal((await ask('/pets', etag)).status, 304)
    await service().add({ name: 'New', categoryId: 1 })
    const changed = await ask('/pets', etag)
    assert.equal(changed.status, 200)
    assert.notEqual(changed.headers.get('etag'), etag)
  })

  it('mean nothing where nothing is there, nor to a create', async () => {
    assert.equal((await ask('/pets/999999', '*')).status, 404)
    assert.equal((await service().add({ name: 'Rex', categoryId: 1 }, { 'If-None-Match': '*' })).status, 201)
  })

  it('let nobody else keep an answer: private, no-cache on everything under /v1', async () => {
    const responses = [
      await service().call('/pets'),
      await service().call(`/pets/${id}`),
      await service().call('/pets/999999'),
      await service().add({ name: 'Rex', categoryId: 1 }),
      await service().add('{'),
      await fetch(`${service().url}/v1/pets`),
      await fetch(`${service().url}/v1/nothing`),
    ]
    for (const { headers } of responses) assert.equal(headers.get('cache-control'), 'private, no-cache')
  })
})

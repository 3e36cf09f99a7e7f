// The animals in the console: a page at a time, by status where asked, with the same checks as the API.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { signedIn } from './console-client.ts'
import { describeService } from './harness.ts'

const namesIn = (body: string) =>
  [...body.matchAll(/<th scope="row"><a href="[^"]*"><bdi>([^<]*)<\/bdi>/g)].map(([, name]) => name)
const linkIn = (body: string, words: string) =>
  new RegExp(`href="([^"]*)">${words}`).exec(body)?.[1]?.replaceAll('&amp;', '&')

describeService('The animals in the console', (service) => {
  it('say what to do while there are none, of any status or of one', async () => {
    const client = await signedIn(service())
    assert.match((await client.get('/animals')).body, /No animals yet.*href="\/animals\/new"/s)
    assert.match((await client.get('/animals?status=sold')).body, /No animal is sold/)
  })

  it('are shown newest first, 20 on a page, each of them once, and within their status', async () => {
    await service().store.pets.createMany(
      Array.from({ length: 23 }, (_, index) => ({ name: `sold ${index}`, categoryId: 1n, status: 'sold' })),
    )
    await service().store.pets.createMany(
      Array.from({ length: 20 }, (_, index) => ({ name: `pending ${index}`, categoryId: 1n, status: 'pending' })),
    )
    const client = await signedIn(service())
    const first = await client.get('/animals?status=sold')
    assert.deepEqual(
      namesIn(first.body),
      Array.from({ length: 20 }, (_, index) => `sold ${22 - index}`),
    )
    assert.equal(linkIn(first.body, '← Newest'), undefined)
    const second = await client.get(linkIn(first.body, 'Older →')!)
    assert.deepEqual(namesIn(second.body), ['sold 2', 'sold 1', 'sold 0'])
    assert.equal(linkIn(second.body, 'Older →'), undefined)
    assert.equal(linkIn(second.body, '← Newest'), '/animals?status=sold')
    assert.equal(linkIn((await client.get('/animals?status=pending')).body, 'Older →'), undefined)
  })

  it('are found by an id, whatever is typed: it stays one part of the address', async () => {
    const client = await signedIn(service())
    for (const typed of ['€', 'a/b', '../keys', '...', '//a.example', '?a=b#c', '%2e%2e', 'ü\r\nX: y', '\ud800']) {
      const { status, location } = await client.get(`/animals?id=${encodeURIComponent(typed.toWellFormed())}`)
      assert.equal(status, 303, typed)
      const { origin, pathname, search, hash } = new URL(location!, 'http://pets.example/animals')
      assert.deepEqual([origin, search, hash], ['http://pets.example', '', ''], typed)
      assert.match(pathname, /^\/animals\/[^/]+$/, typed)
      assert.equal((await client.get(location!)).status, 404, typed)
    }
    for (const typed of ['.', '..']) assert.equal((await client.get(`/animals?id=${typed}`)).status, 200, typed)
  })

  it('are counted by status, and the chosen one is marked', async () => {
    const { body } = await (await signedIn(service())).get('/animals?status=sold')
    const tabs = [...body.matchAll(/<a class="tab[^>]*>/g)].map(([tab]) => tab)
    assert.deepEqual(
      tabs.map((tab) => tab.includes('aria-current')),
      [false, false, false, true],
    )
    const counts = [...body.matchAll(/<span class="tab-count">([^<]*)</g)].map(([, count]) => count)
    assert.deepEqual(counts, ['43', '0', '20', '23'])
  })

  it('that were just added stand out, and are announced with their id', async () => {
    const client = await signedIn(service())
    const { location } = await client.submit('/animals/new', '/animals/new', { name: 'Fresh', categoryId: '7' })
    const { body } = await client.get(location!)
    const id = location!.split('=')[1]!
    assert.match(
      body,
      new RegExp(`role="status"><bdi>Fresh</bdi> added \\(${id}\\)\\.\\s*<a href="/animals/new">Add another`),
    )
    assert.match(body, /<tr class="fresh">\s*<th scope="row"><a href="\/animals\/\d+"><bdi>Fresh</)
    assert.equal(body.split('class="fresh"').length, 2)
    assert.equal((await service().store.pets.get(BigInt(id)))?.status, 'available')
  })

  it('asked for with a status or position that is none get the words of the API', async () => {
    const client = await signedIn(service())
    for (const query of ['status=lost', 'cursor=nonsense']) {
      const { status, body } = await client.get(`/animals?${query}`)
      const api = (await (await service().call(`/pets?${query}`)).json()) as { message: string }
      assert.equal(status, 400)
      assert.ok(body.replaceAll('&quot;', '"').includes(api.message), api.message)
    }
  })
})

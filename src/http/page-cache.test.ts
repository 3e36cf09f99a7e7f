// What the page cache keeps, for how long, and how much of it.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { OPERATIONS } from '../contract/operations.ts'
import type { Bytes } from './call.ts'
import { type Page, PageCache } from './page-cache.ts'

function page(body: string): Page {
  return { operation: OPERATIONS[0]!, body: body as Bytes, etag: '""', headers: [], contentHeaders: [] }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

/** A store whose version the test sets, and how often it was asked. */
function cacheOf(store: { version: number | undefined; asked: number }): PageCache {
  return new PageCache({
    version() {
      store.asked += 1
      return store.version
    },
  })
}

/** A page is kept when it is asked for the second time. */
function keepTwice(cache: PageCache, address: string, version: number | undefined, kept = page('x')): void {
  cache.keep(address, version, kept)
  cache.keep(address, version, kept)
}

describe('the page cache', () => {
  it('asks for the version once a turn of the event loop, and again in the next', async () => {
    const store = { version: 1, asked: 0 }
    const cache = cacheOf(store)
    for (let count = 0; count < 10; count += 1) assert.equal(cache.versionOnArrival(), 1)
    assert.equal(store.asked, 1)
    store.version = 2
    await turn()
    assert.equal(cache.versionOnArrival(), 2)
    assert.equal(store.asked, 2)
  })

  it('gives a page to requests of its version, and to no other', async () => {
    const store = { version: 1, asked: 0 }
    const cache = cacheOf(store)
    const arrived = cache.versionOnArrival()
    keepTwice(cache, '/v1/pets', arrived)
    assert.ok(cache.find('/v1/pets', arrived))
    store.version = 2
    await turn()
    const later = cache.versionOnArrival()
    assert.equal(cache.find('/v1/pets', later), undefined)
    assert.equal(cache.find('/v1/pets', arrived), undefined)
  })

  it('does not keep a page that was read for a request of an older version', async () => {
    const store = { version: 1, asked: 0 }
    const cache = cacheOf(store)
    const slow = cache.versionOnArrival()
    store.version = 2
    await turn()
    const now = cache.versionOnArrival()
    keepTwice(cache, '/v1/pets', slow)
    assert.equal(cache.find('/v1/pets', slow), undefined)
    assert.equal(cache.find('/v1/pets', now), undefined)
  })

  it('keeps nothing where the store has no version', () => {
    const cache = cacheOf({ version: undefined, asked: 0 })
    const arrived = cache.versionOnArrival()
    keepTwice(cache, '/v1/pets', arrived)
    assert.equal(cache.find('/v1/pets', arrived), undefined)
  })

  it('keeps a page only when it is asked for again', () => {
    const cache = cacheOf({ version: 1, asked: 0 })
    const arrived = cache.versionOnArrival()
    cache.keep('/v1/pets', arrived, page('x'))
    assert.equal(cache.find('/v1/pets', arrived), undefined)
    cache.keep('/v1/pets', arrived, page('x'))
    assert.ok(cache.find('/v1/pets', arrived))
  })

  it('holds so many pages and so many bytes, and lets the oldest go', () => {
    const cache = cacheOf({ version: 1, asked: 0 })
    const arrived = cache.versionOnArrival()
    const addresses = Array.from({ length: 5000 }, (_, index) => `/v1/pets/${index}`)
    for (const address of addresses) keepTwice(cache, address, arrived)
    assert.equal(addresses.filter((address) => cache.find(address, arrived)).length, 1024)
    assert.ok(cache.find('/v1/pets/4999', arrived))
    for (const address of ['/a', '/b', '/c']) keepTwice(cache, address, arrived, page('x'.repeat(3 * 1024 * 1024)))
    assert.deepEqual(['/a', '/b', '/c'].map((address) => cache.find(address, arrived) !== undefined), [false, true, true])
    assert.equal(cache.find('/v1/pets/4999', arrived), undefined)
  })

  it('does not take an address of any length', () => {
    const cache = cacheOf({ version: 1, asked: 0 })
    const arrived = cache.versionOnArrival()
    keepTwice(cache, `/v1/pets?${'x'.repeat(1000)}`, arrived)
    assert.equal(cache.find(`/v1/pets?${'x'.repeat(1000)}`, arrived), undefined)
  })
})

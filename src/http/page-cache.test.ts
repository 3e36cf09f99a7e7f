// What the page cache keeps, for how long, and how much of it.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { OPERATIONS } from '../contract/operations.ts'
import type { Bytes } from './call.ts'
import { type Page, PageCache } from './page-cache.ts'

function page(body: string): Page {
  const route = { operation: OPERATIONS[0]!, parameter: undefined, query: '' }
  return { route, body: body as Bytes, etag: '""', headers: [], contentHeaders: [] }
}

/** Of a store whose version the test sets. */
function cacheOf(store: { version: number | undefined }): PageCache {
  const cache = new PageCache({ version: () => store.version })
  cache.refresh()
  return cache
}

/** A page is kept when it is asked for the second time. */
function keepTwice(cache: PageCache, address: string, kept = page('x'), version = cache.version): void {
  cache.keep(address, version, kept)
  cache.keep(address, version, kept)
}

describe('the page cache', () => {
  it('gives a page as long as the version stays, and not after', () => {
    const store = { version: 1 }
    const cache = cacheOf(store)
    keepTwice(cache, '/v1/pets')
    cache.refresh()
    assert.ok(cache.find('/v1/pets'))
    store.version = 2
    cache.refresh()
    assert.equal(cache.find('/v1/pets'), undefined)
  })

  it('does not keep a page that was read for a request of an older version', () => {
    const store = { version: 1 }
    const cache = cacheOf(store)
    const slow = cache.version
    store.version = 2
    cache.refresh()
    keepTwice(cache, '/v1/pets', page('x'), slow)
    assert.equal(cache.find('/v1/pets'), undefined)
  })

  it('keeps nothing where the store has no version', () => {
    const cache = cacheOf({ version: undefined })
    keepTwice(cache, '/v1/pets')
    assert.equal(cache.find('/v1/pets'), undefined)
  })

  it('keeps a page only when it is asked for again', () => {
    const cache = cacheOf({ version: 1 })
    cache.keep('/v1/pets', cache.version, page('x'))
    assert.equal(cache.find('/v1/pets'), undefined)
    cache.keep('/v1/pets', cache.version, page('x'))
    assert.ok(cache.find('/v1/pets'))
  })

  it('holds so many pages and so many bytes, and lets the oldest go', () => {
    const cache = cacheOf({ version: 1 })
    const addresses = Array.from({ length: 5000 }, (_, index) => `/v1/pets/${index}`)
    for (const address of addresses) keepTwice(cache, address)
    assert.equal(addresses.filter((address) => cache.find(address)).length, 1024)
    assert.ok(cache.find('/v1/pets/4999'))
    for (const address of ['/a', '/b', '/c']) keepTwice(cache, address, page('x'.repeat(3 * 1024 * 1024)))
    assert.deepEqual(['/a', '/b', '/c'].map((address) => cache.find(address) !== undefined), [false, true, true])
    assert.equal(cache.find('/v1/pets/4999'), undefined)
  })

  it('does not take an address of any length', () => {
    const cache = cacheOf({ version: 1 })
    keepTwice(cache, `/v1/pets?${'x'.repeat(1000)}`)
    assert.equal(cache.find(`/v1/pets?${'x'.repeat(1000)}`), undefined)
  })
})

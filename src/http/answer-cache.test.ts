// What the answer cache keeps, for how long, and how much of it; what makes an ETag, and which If-None-Match it meets.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { Refusal } from '../contract/errors.ts'
import { OPERATIONS } from '../contract/operations.ts'
import { AnswerCache, type CachedAnswer, etagOf, matchesEtag } from './answer-cache.ts'
import type { Bytes } from './call.ts'

function page(body: string): CachedAnswer {
  const route = { operation: OPERATIONS[0]!, parameters: {}, query: '' }
  return { route, body: body as Bytes, etag: '""', headers: [], contentHeaders: [] }
}

/** Of a store whose version the test sets. */
function cacheOf(store: { version: number | undefined }): AnswerCache {
  const version = () => store.version
  const cache = new AnswerCache({ version, versionToRead: version })
  cache.refresh()
  return cache
}

/** A page is kept when it is asked for the second time. */
async function askTwice(cache: AnswerCache, address: string, read = page('x'), version = cache.version): Promise<void> {
  for (let count = 0; count < 2; count += 1) await cache.readThrough(address, version, async () => read)
}

describe('the answer cache', () => {
  it('gives a page as long as the version stays, and not after', async () => {
    const store = { version: 1 }
    const cache = cacheOf(store)
    await askTwice(cache, '/v1/pets')
    cache.refresh()
    assert.ok(cache.find('/v1/pets'))
    store.version = 2
    cache.refresh()
    assert.equal(cache.find('/v1/pets'), undefined)
  })

  it('reads a page once for all who ask for it at the same time, and again for who asks after a write', async () => {
    const store = { version: 1 }
    const cache = cacheOf(store)
    await askTwice(cache, '/v1/pets')
    store.version = 2
    cache.refresh()
    const answers: ((read: CachedAnswer) => void)[] = []
    const ask = () =>
      cache.readThrough('/v1/pets', cache.version, () => new Promise((resolve) => answers.push(resolve)))
    const [first, second] = [ask(), ask()]
    store.version = 3
    cache.refresh()
    const third = ask()
    assert.equal(answers.length, 2)
    const [old, current] = [page('old'), page('current')]
    answers[1]!(current)
    answers[0]!(old)
    assert.deepEqual(await Promise.all([first, second, third]), [old, old, current])
    assert.equal(cache.find('/v1/pets'), current)
  })

  it('tells all who wait that a page could not be read, and reads it again for the next', async () => {
    const cache = cacheOf({ version: 1 })
    const fail = () => cache.readThrough('/v1/pets', 1, () => Promise.reject(new Error('no disk')))
    await Promise.all([fail(), fail()].map((asked) => assert.rejects(asked, /no disk/)))
    const found = page('x')
    assert.equal(await cache.readThrough('/v1/pets', 1, async () => found), found)
  })

  it('does not keep a page that was read for a request of an older version', async () => {
    const store = { version: 1 }
    const cache = cacheOf(store)
    const slow = cache.version
    store.version = 2
    cache.refresh()
    await askTwice(cache, '/v1/pets', page('x'), slow)
    assert.equal(cache.find('/v1/pets'), undefined)
  })

  it('does not keep a page when there was a write while it was read', async () => {
    const store = { version: 1 }
    const cache = cacheOf(store)
    await askTwice(cache, '/v1/pets')
    store.version = 2
    cache.refresh()
    await cache.readThrough('/v1/pets', 2, async () => {
      store.version = 3
      cache.refresh()
      return page('x')
    })
    assert.equal(cache.find('/v1/pets'), undefined)
  })

  it('keeps a page that was read while a commit waited for its sync, from the moment that it is synced', async () => {
    let version = 1
    const cache = new AnswerCache({ version: () => version, versionToRead: () => 2 })
    cache.refresh()
    await askTwice(cache, '/v1/pets')
    assert.equal(cache.find('/v1/pets'), undefined, 'not for the version before')
    await cache.readThrough('/v1/pets', 1, async () => {
      version = 2
      return page('x')
    })
    cache.refresh()
    assert.ok(cache.find('/v1/pets'))
    version = 3
    cache.refresh()
    assert.equal(cache.find('/v1/pets'), undefined)
  })

  it('keeps nothing where the store has no version', async () => {
    const cache = cacheOf({ version: undefined })
    await askTwice(cache, '/v1/pets')
    assert.equal(cache.find('/v1/pets'), undefined)
  })

  it('where the store has no version, reads a page once for all of a turn, and again for those of the next', async () => {
    const cache = cacheOf({ version: undefined })
    await askTwice(cache, '/v1/pets')
    let count = 0
    const ask = () => cache.readThrough('/v1/pets', cache.version, async () => page(String((count += 1))))
    const turn = [ask(), ask(), ask()]
    cache.refresh()
    const next = [ask(), ask()]
    assert.deepEqual(
      (await Promise.all([...turn, ...next])).map((read) => 'body' in read && read.body),
      ['1', '1', '1', '2', '2'],
    )
  })

  it('keeps no refusal', async () => {
    const cache = cacheOf({ version: 1 })
    for (let count = 0; count < 3; count += 1)
      await cache.readThrough('/v1/pets', 1, async () => new Refusal('invalid_parameter', ''))
    assert.equal(cache.find('/v1/pets'), undefined)
  })

  it('keeps a page only when it is asked for again', async () => {
    const cache = cacheOf({ version: 1 })
    await cache.readThrough('/v1/pets', 1, async () => page('x'))
    assert.equal(cache.find('/v1/pets'), undefined)
    await cache.readThrough('/v1/pets', 1, async () => page('x'))
    assert.ok(cache.find('/v1/pets'))
  })

  it('holds so many pages and so many bytes, and lets the oldest go', async () => {
    const cache = cacheOf({ version: 1 })
    const addresses = Array.from({ length: 5000 }, (_, index) => `/v1/pets/${index}`)
    for (const address of addresses) await askTwice(cache, address)
    assert.equal(addresses.filter((address) => cache.find(address)).length, 1024)
    assert.ok(cache.find('/v1/pets/4999'))
    for (const address of ['/a', '/b', '/c']) await askTwice(cache, address, page('x'.repeat(3 * 1024 * 1024)))
    assert.deepEqual(
      ['/a', '/b', '/c'].map((address) => cache.find(address) !== undefined),
      [false, true, true],
    )
    assert.equal(cache.find('/v1/pets/4999'), undefined)
  })

  it('has all its room again for the next version', async () => {
    const store = { version: 1 }
    const cache = cacheOf(store)
    for (const version of [1, 2, 3]) {
      store.version = version
      cache.refresh()
      for (const address of ['/a', '/b']) await askTwice(cache, address, page('x'.repeat(3 * 1024 * 1024)))
      assert.ok(cache.find('/a') && cache.find('/b'), `version ${version}`)
    }
  })

  it('remembers so many addresses that were asked for, and not all there ever were', async () => {
    const cache = cacheOf({ version: 1 })
    const ask = (address: string) => cache.readThrough(address, 1, async () => page('x'))
    await ask('/v1/pets')
    for (let id = 0; id < 1024; id += 1) await ask(`/v1/pets/${id}`)
    await ask('/v1/pets')
    assert.equal(cache.find('/v1/pets'), undefined, 'as if it came for the first time')
  })

  it('keeps pages that are asked for in turns', async () => {
    const cache = cacheOf({ version: 1 })
    for (const address of ['/a', '/b', '/c', '/a', '/b', '/c'])
      await cache.readThrough(address, 1, async () => page('x'))
    assert.ok(cache.find('/a') && cache.find('/b') && cache.find('/c'))
  })

  it('counts the pages that it had to read', async () => {
    const cache = cacheOf({ version: 1 })
    await askTwice(cache, '/v1/pets')
    assert.deepEqual(cache.lookups, { hits: 0, misses: 2 })
  })

  it('may be filled by one page, to the last byte', async () => {
    const cache = cacheOf({ version: 1 })
    await askTwice(cache, '/a', page('x'.repeat(8 * 1024 * 1024 - 2)))
    assert.ok(cache.find('/a'))
    await askTwice(cache, '/b', page('x'.repeat(8 * 1024 * 1024 - 1)))
    assert.equal(cache.find('/b'), undefined)
  })

  it('counts a page once, however often it is read beside', async () => {
    const cache = cacheOf({ version: 1 })
    for (let count = 0; count < 2000; count += 1)
      await cache.readThrough('/v1/pets', 1, async () => page('x'.repeat(10_000)))
    assert.ok(cache.find('/v1/pets'))
  })

  it('does not take an address of any length', async () => {
    const cache = cacheOf({ version: 1 })
    for (const length of [200, 201, 1000]) {
      const address = '/v1/pets?'.padEnd(length, 'x')
      await askTwice(cache, address)
      assert.equal(cache.find(address) !== undefined, length === 200, `${length}`)
    }
  })
})

describe('An ETag', () => {
  it('is strong, the same for the same bytes, and another for others', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (one, other) => {
        assert.match(etagOf(one), /^"[\w-]{22}"$/)
        assert.equal(etagOf(one), etagOf(Buffer.from(one)))
        assert.equal(etagOf(one) === etagOf(other), one === other)
      }),
    )
  })

  it('is made from the bytes alone: it stays good after a restart, and at another process or instance', () => {
    assert.equal(etagOf('[]'), '"T1PNoYwrqgwDVLtfmj7L5e"')
  })

  it('matches where it is in the list, weak or strong, and by *', () => {
    const etag = etagOf('x')
    for (const value of [etag, `W/${etag}`, `"a", ${etag}`, `"a",${etag},"b"`, '*', ' * '])
      assert.ok(matchesEtag(value, etag), value)
    for (const value of [undefined, '', '"a"', etag.slice(1), `w/${etag}`, `xW/${etag}`, `${etag} x`, '**', 'W/*'])
      assert.ok(!matchesEtag(value, etag), String(value))
  })
})

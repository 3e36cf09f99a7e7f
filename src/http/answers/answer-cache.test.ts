// What the answer cache keeps, for how long, and how much of it; what makes an ETag, and which If-None-Match it meets.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { Refusal } from '../../contract/errors.ts'
import { OPERATIONS } from '../../contract/operations.ts'
import { AnswerCache, type CachedAnswer, etagOf, matchesEtag } from './answer-cache.ts'
import type { Bytes } from '../call/call.ts'

function page(body: string): CachedAnswer {
  const route = { operation: OPERATIONS[0]!, parameters: {}, query: '' }
  return { route, body: body as Bytes, etag: '""', headers: [], contentHeaders: [] }
}

const PETS = '/v1/pets'
const THREE_MEGABYTES = page('x'.repeat(3 * 1024 * 1024))

/** A cache of a store whose version a write moves, or that has none. */
function cacheOf(first: number | undefined) {
  let version = first
  const cache = new AnswerCache({ version: () => version, versionAfterSync: () => version })
  cache.refresh()
  const write = () => {
    version! += 1
    cache.refresh()
  }
  const ask = (address = PETS, found: CachedAnswer | Refusal = page('x')) =>
    cache.readThrough(address, async () => found)
  /** A page is kept when it is asked for the second time. */
  const askTwice = async (address = PETS, found = page('x')) => {
    for (let count = 0; count < 2; count += 1) await ask(address, found)
  }
  const keeps = (address = PETS) => cache.find(address) !== undefined
  return { cache, write, ask, askTwice, keeps }
}

describe('the answer cache', () => {
  it('keeps a page when it is asked for again, as long as the version stays, and not after', async () => {
    const { cache, write, ask, keeps } = cacheOf(1)
    for (const isKept of [false, true]) {
      await ask()
      assert.equal(keeps(), isKept)
    }
    assert.deepEqual(cache.lookups, { hits: 0, misses: 2 }, 'it counts the pages that it had to read')
    cache.refresh()
    assert.ok(keeps())
    write()
    assert.ok(!keeps())
  })

  it('reads a page once for all who ask for it at the same time, and again for who asks after a write', async () => {
    const { cache, write, askTwice } = cacheOf(1)
    await askTwice()
    write()
    const answers: ((read: CachedAnswer) => void)[] = []
    const ask = () => cache.readThrough(PETS, () => new Promise((resolve) => answers.push(resolve)))
    const [first, second] = [ask(), ask()]
    write()
    const third = ask()
    assert.equal(answers.length, 2)
    const [old, current] = [page('old'), page('current')]
    answers[0]!(old)
    assert.deepEqual(await Promise.all([first, second]), [old, old])
    const fourth = ask()
    assert.equal(answers.length, 2, 'the read of the new version still runs')
    answers[1]!(current)
    assert.deepEqual(await Promise.all([third, fourth]), [current, current])
    assert.equal(cache.find(PETS), current)
  })

  it('tells all who wait that a page could not be read, and reads it again for the next', async () => {
    const { cache, ask } = cacheOf(1)
    const fail = () => cache.readThrough(PETS, () => Promise.reject(new Error('no disk')))
    await Promise.all([fail(), fail()].map((asked) => assert.rejects(asked, /no disk/)))
    const found = page('x')
    assert.equal(await ask(PETS, found), found)
  })

  it('asks for the version once for all requests that are served together, and again for the next', async () => {
    let version = 1
    let asked = 0
    const cache = new AnswerCache({ version: () => ((asked += 1), version), versionAfterSync: () => version })
    cache.find(PETS)
    for (let count = 0; count < 2; count += 1) await cache.readThrough(PETS, async () => page('x'))
    const before = asked
    assert.deepEqual([cache.find(PETS), cache.find(PETS)].map(Boolean), [true, true])
    assert.equal(asked, before + 1)
    version = 2
    await Promise.resolve()
    assert.equal(cache.find(PETS), undefined)
  })

  it('does not keep a page if there was a write while it was read', async () => {
    const { cache, write, ask, keeps } = cacheOf(1)
    await ask()
    await cache.readThrough(PETS, async () => {
      write()
      return page('x')
    })
    assert.ok(!keeps())
  })

  it('keeps a page that was read while a commit waited for its sync, from the moment that it is synced', async () => {
    let version = 1
    const cache = new AnswerCache({ version: () => version, versionAfterSync: () => 2 })
    cache.refresh()
    for (let count = 0; count < 2; count += 1) await cache.readThrough(PETS, async () => page('x'))
    assert.equal(cache.find(PETS), undefined, 'not for the version before')
    await cache.readThrough(PETS, async () => {
      version = 2
      return page('x')
    })
    cache.refresh()
    assert.ok(cache.find(PETS))
    version = 3
    cache.refresh()
    assert.equal(cache.find(PETS), undefined)
  })

  it('where the store has no version, keeps nothing, reads a page once for all of a turn, and again for those of the next', async () => {
    const { cache, askTwice, keeps } = cacheOf(undefined)
    await askTwice()
    assert.ok(!keeps())
    let count = 0
    const ask = () => cache.readThrough(PETS, async () => page(String((count += 1))))
    const turn = [ask(), ask(), ask()]
    cache.refresh()
    const next = [ask(), ask()]
    assert.deepEqual(
      (await Promise.all([...turn, ...next])).map((read) => 'body' in read && read.body),
      ['1', '1', '1', '2', '2'],
    )
  })

  it('keeps no refusal', async () => {
    const { ask, keeps } = cacheOf(1)
    for (let count = 0; count < 3; count += 1) await ask(PETS, new Refusal('invalid_parameter', ''))
    assert.ok(!keeps())
  })

  it('holds so many pages and so many bytes, and lets the oldest go', async () => {
    const { askTwice, keeps } = cacheOf(1)
    const addresses = Array.from({ length: 5000 }, (_, index) => `/v1/pets/${index}`)
    for (const address of addresses) await askTwice(address)
    assert.equal(addresses.filter(keeps).length, 1024)
    assert.ok(keeps('/v1/pets/4999'))
    for (const address of ['/a', '/b', '/c']) await askTwice(address, THREE_MEGABYTES)
    assert.deepEqual(['/a', '/b', '/c', '/v1/pets/4999'].map(keeps), [false, true, true, false])
  })

  it('has all its room again for the next version', async () => {
    const { write, askTwice, keeps } = cacheOf(1)
    for (const version of [1, 2, 3]) {
      for (const address of ['/a', '/b']) await askTwice(address, THREE_MEGABYTES)
      assert.ok(keeps('/a') && keeps('/b'), `version ${version}`)
      write()
    }
  })

  it('remembers so many addresses that were asked for, and not all there ever were', async () => {
    const { ask, keeps } = cacheOf(1)
    await ask()
    for (let id = 0; id < 1024; id += 1) await ask(`/v1/pets/${id}`)
    await ask()
    assert.ok(!keeps(), 'as if it came for the first time')
  })

  it('keeps pages that are asked for in turns', async () => {
    const { ask, keeps } = cacheOf(1)
    for (const address of ['/a', '/b', '/c', '/a', '/b', '/c']) await ask(address)
    assert.ok(keeps('/a') && keeps('/b') && keeps('/c'))
  })

  it('may be filled by one page, to the last byte', async () => {
    const { askTwice, keeps } = cacheOf(1)
    await askTwice('/a', page('x'.repeat(8 * 1024 * 1024 - 2)))
    assert.ok(keeps('/a'))
    await askTwice('/b', page('x'.repeat(8 * 1024 * 1024 - 1)))
    assert.ok(!keeps('/b'))
  })

  it('counts a page once, however often it is read beside', async () => {
    const { ask, keeps } = cacheOf(1)
    for (let count = 0; count < 2000; count += 1) await ask(PETS, page('x'.repeat(10_000)))
    assert.ok(keeps())
  })

  it('does not take an address of any length', async () => {
    const { askTwice, keeps } = cacheOf(1)
    for (const length of [200, 201, 1000]) {
      const address = '/v1/pets?'.padEnd(length, 'x')
      await askTwice(address)
      assert.equal(keeps(address), length === 200, `${length}`)
    }
  })
})

describe('An ETag', () => {
  it('is strong, the same for the same bytes, and another for others', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (one, other) => {
        assert.match(etagOf(one), /^"[\w-]{22}"$/)
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

// Section 4.1 of the specification: listing animals, with its order, its pages and its parameters.
import assert from 'node:assert/strict'
import { before, it } from 'node:test'
import { PET_STATUSES } from '../../src/contract/pets.ts'
import { describeService, expectError } from '../harness/harness.ts'

interface Listed {
  id: number
  status: string
}

describeService('4.1 List animals', (service) => {
  const list = async (query = '') => {
    const response = await service().call(`/pets${query}`)
    const pets = (await response.json()) as Listed[]
    assert.equal(response.status, 200, JSON.stringify(pets))
    return { pets, ids: pets.map(({ id }) => id), link: response.headers.get('link'), headers: response.headers }
  }
  /** Follows the links to the end. */
  async function* pages(query: string) {
    for (let next: string | undefined = query; next !== undefined;) {
      const page = await list(next)
      yield page
      next = page.link === null ? undefined : /^<\/v1\/pets(\?[^>]*)>; rel="next"$/.exec(page.link)![1]
    }
  }

  before(async () => {
    const { store } = service()
    await store.pets.createMany(
      Array.from({ length: 130 }, (_, index) => ({
        name: `pet ${index}`,
        categoryId: 1n,
        status: PET_STATUSES[index % PET_STATUSES.length]!,
      })),
    )
  })

  it('answers 200 with a plain array as application/json', async () => {
    const { pets, headers } = await list()
    assert.equal(headers.get('content-type'), 'application/json')
    assert.ok(Array.isArray(pets))
  })

  it('answers newest first', async () => {
    const made = (await (await service().add({ name: 'new', categoryId: 1 })).json()) as Listed
    const { ids } = await list('?limit=100')
    assert.equal(ids[0], made.id)
    assert.deepEqual(
      ids,
      ids.toSorted((a, b) => b - a),
    )
  })

  it('answers 20 animals where limit is omitted, and never more than 100', async () => {
    assert.equal((await list()).pets.length, 20)
    assert.equal((await list('?limit=100')).pets.length, 100)
  })

  for (const [query, length] of Object.entries({
    '?limit=1': 1,
    '?limit=99': 99,
    '?limit=007': 7,
    '?limit=0000000000000000000000100': 100,
    '?%6Cimit=3': 3,
    '?limit=%33': 3,
  })) {
    it(`answers ${length} animals to ${query}`, async () => assert.equal((await list(query)).pets.length, length))
  }

  for (const status of PET_STATUSES) {
    it(`answers only animals of the status ${status} where that is asked for`, async () => {
      const { pets } = await list(`?status=${status}&limit=100`)
      assert.ok(pets.length >= 40)
      assert.deepEqual([...new Set(pets.map((pet) => pet.status))], [status])
    })
  }

  it('links to the next page while more follows, repeating the other parameters', async () => {
    const { link } = await list('?status=sold&limit=5')
    assert.match(link ?? '', /^<\/v1\/pets\?limit=5&status=sold&cursor=[\w-]{12}>; rel="next"$/)
  })

  it('has no link on the last page, also where it is exactly full', async () => {
    const all: number[] = []
    for await (const { ids } of pages('?status=pending&limit=100')) all.push(...ids)
    assert.equal((await list(`?status=pending&limit=${all.length}`)).link, null)
    assert.notEqual((await list(`?status=pending&limit=${all.length - 1}`)).link, null)
  })

  it('gives no animal twice and misses none of the old ones while animals are added', async () => {
    const old = new Set<number>()
    for await (const { ids } of pages('?limit=100')) for (const id of ids) old.add(id)
    const seen: number[] = []
    for await (const { ids } of pages('?limit=7')) {
      seen.push(...ids)
      await Promise.all(Array.from({ length: 3 }, () => service().add({ name: 'meanwhile', categoryId: 1 })))
    }
    assert.equal(new Set(seen).size, seen.length)
    assert.deepEqual(
      seen.filter((id) => old.has(id)),
      [...old],
    )
  })

  it('pages through one status in the same way', async () => {
    const seen: Listed[] = []
    for await (const { pets } of pages('?status=sold&limit=9')) seen.push(...pets)
    const { pets } = await list('?status=sold&limit=100')
    assert.deepEqual(seen, pets)
  })

  it('answers an empty array below the oldest animal', async () => {
    // The cursor of the smallest int64: nothing lies below it.
    assert.deepEqual((await list(`?cursor=${Buffer.from('018000000000000000', 'hex').toString('base64url')}`)).pets, [])
  })

  for (const value of [
    '0',
    '101',
    '-1',
    '1.0',
    '1e1',
    '0x10',
    '%205',
    '5%20',
    '+5',
    '',
    'ten',
    '٣',
    '９',
    '5,6',
    '99999999999999999999',
    'NaN',
    'null',
    '%00',
    '%zz',
    '5%0A',
    '%',
  ]) {
    it(`refuses limit=${value}`, async () => {
      const message = await expectError(await service().call(`/pets?limit=${value}`), 'invalid_parameter')
      assert.match(
        message,
        /^The query parameter limit must be a whole number from 1 to 100 in decimal digits, got ".*"\.$/s,
      )
    })
  }

  for (const value of ['Sold', 'sold%20', '', 'gone', 'sold,pending', 'null', '%00', '\u{1F408}']) {
    it(`refuses status=${value}`, async () => {
      const message = await expectError(await service().call(`/pets?status=${value}`), 'invalid_parameter')
      assert.match(message, /^The query parameter status must be one of available, pending, sold, got ".*"\.$/)
    })
  }

  for (const value of [
    '',
    '1',
    'AQAAAAAAAAAB=',
    'AAAAAAAAAAAB',
    'AQAAAAAAAAA',
    'AQAAAAAAAA+B',
    '!!!!!!!!!!!!',
    'AQAAAAAAAAABA',
    '%00'.repeat(12),
    '1'.repeat(5000),
  ]) {
    it(`refuses cursor=${value.slice(0, 40)}`, async () => {
      const message = await expectError(await service().call(`/pets?cursor=${value}`), 'invalid_parameter')
      assert.match(
        message,
        /^The query parameter cursor must be taken unchanged from the Link header of the page before, got "/,
      )
      assert.ok(message.length < 500)
    })
  }

  for (const query of [
    'limit=5&limit=5',
    'status=sold&status=sold',
    'limit=5&limit',
    'cursor=AQAAAAAAAAAB&cursor=AQAAAAAAAAAB',
    'limit=5&%6cimit=6',
  ]) {
    it(`refuses a parameter that comes twice: ${query}`, async () => {
      assert.match(
        await expectError(await service().call(`/pets?${query}`), 'invalid_parameter'),
        /was given 2 times; give it once\.$/,
      )
    })
  }

  it('finds a parameter behind any number of others, also one that cannot be decoded', async () => {
    const message = await expectError(
      await service().call(`/pets?${'x=1&'.repeat(2000)}status=%FF`),
      'invalid_parameter',
    )
    assert.match(message, /got "\uFFFD"\.$/)
  })

  for (const query of [
    '?',
    '?&&',
    '?page=2',
    '?offset=0&page=x',
    '?LIMIT=0',
    '?limit[]=0',
    '?__proto__=1',
    '?=5',
    '?%FF=%FF',
  ]) {
    it(`ignores parameters it does not know: ${query}`, async () => assert.equal((await list(query)).pets.length, 20))
  }
})

// Creates that share a statement: after which errors they are retried one by one.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { serverSays } from '../../../test/harness/connections/fake-server.ts'
import { NewRow } from '../pet-writes.ts'
import { StoreUnavailable } from '../store.ts'
import { type Creates, gatherCreates } from './pets.ts'
import type { Pool } from './pool.ts'

const rex = new NewRow({ name: 'Rex', categoryId: 1n, status: 'sold' })

/** Makes a database whose every statement fails with `error`, and counts them. Real statements run in test/store/store.test.ts. */
function failing(error: Error): { creates: Creates; statements: () => number } {
  let count = 0
  const write = async () => {
    count += 1
    throw error
  }
  return { creates: gatherCreates({ write } as unknown as Pool), statements: () => count }
}

it('Creates of one turn share a statement, up to a thousand', async () => {
  const { creates, statements } = failing(new StoreUnavailable('away'))
  await Promise.allSettled(Array.from({ length: 1001 }, () => creates.add(rex)))
  assert.equal(statements(), 2)
})

describe('Creates of one turn, when their statement fails', () => {
  const unknown = {
    'the database is away': new StoreUnavailable('away'),
    'the reply could not be read': new Error('ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC'),
    'the server went down over it': serverSays('FATAL', 'XX000'),
    'the server does not know its outcome': serverSays('ERROR', '40003'),
    'the server lost a connection of its own': serverSays('ERROR', '08006'),
    'the server cancelled it': serverSays('ERROR', '57014'),
  }
  for (const [what, error] of Object.entries(unknown)) {
    it(`are not sent again where ${what}: they may be stored`, async () => {
      const { creates, statements } = failing(error)
      const results = await Promise.allSettled([creates.add(rex), creates.add(rex), creates.add(rex)])
      assert.deepEqual(
        results.map(({ status }) => status),
        ['rejected', 'rejected', 'rejected'],
      )
      assert.equal(statements(), 1)
      assert.deepEqual(creates.commits, { commits: 0, writes: 0 }, 'none is counted as committed')
    })
  }

  it('are tried alone where the server refuses the values of one of them', async () => {
    const refusals = { 'a value': '22003', 'a constraint': '23514', 'a trigger': 'P0001' }
    for (const [what, code] of Object.entries(refusals)) {
      const { creates, statements } = failing(serverSays('ERROR', code))
      await Promise.allSettled([creates.add(rex), creates.add(rex), creates.add(rex)])
      assert.equal(statements(), 4, what)
    }
  })

  it('are counted as committed, together or alone, as far as they are stored', async () => {
    let lastId = 0n
    const unsafe = async (_text: string, values: readonly unknown[]) => {
      const names =
        values.length === 1 ? [...String(values[0]).matchAll(/"name":"(\w+)"/g)].map(([, name]) => name) : [values[0]]
      if (names.includes('bad')) throw serverSays('ERROR', '23514')
      return names.map(() => ({ id: (lastId += 1n) }))
    }
    const write = (work: (sql: object) => Promise<unknown>) => work({ unsafe })
    const creates = gatherCreates({ write } as unknown as Pool)
    assert.deepEqual(await Promise.all([creates.add(rex), creates.add(rex), creates.add(rex)]), [1n, 2n, 3n])
    assert.deepEqual(creates.commits, { commits: 1, writes: 3 })
    const results = await Promise.allSettled([
      creates.add(rex),
      creates.add(new NewRow({ ...rex.newPet, name: 'bad' })),
      creates.add(rex),
    ])
    assert.deepEqual(
      results.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled'],
    )
    assert.deepEqual(creates.commits, { commits: 3, writes: 5 })
  })
})

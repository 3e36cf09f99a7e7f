// A wall clock that is set back, as by an administrator or a time server, lengthens no window and no age.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { SIGN_IN_BY_ACCOUNT_AND_ADDRESS } from '../../src/accounts/throttle.ts'
import { ConsoleClient } from '../harness/connections/console-client.ts'
import { ENGINES } from '../harness/databases/engines.ts'
import { expectError, PASSWORD, type PetstoreOptions, startPetstore } from '../harness/harness.ts'

const HOUR_MS = 3_600_000

/** Both clocks go on together until the wall clock is set back. */
function startClocks() {
  const passed = { wall: 0, real: 0 }
  const start = Date.now()
  const options: PetstoreOptions = { clock: () => start + passed.wall, monotonic: () => passed.real }
  const goOn = (ms: number) => {
    passed.wall += ms
    passed.real += ms
  }
  return { options, goOn, setBack: (ms: number) => (passed.wall -= ms) }
}

describe('When the wall clock is set back an hour', () => {
  for (const engine of ENGINES) {
    it(`a key that was revoked elsewhere is still refused within 5 seconds, on ${engine.name}`, async () => {
      const { options, goOn, setBack } = startClocks()
      await using database = await engine.newEmptyDatabase()
      await using here = await startPetstore({ database: database.url, ...options })
      await using elsewhere = await startPetstore({ database: database.url })
      assert.equal((await here.call('/pets')).status, 200)
      await elsewhere.accounts.revokeKey(here.apiKey, 'console')
      setBack(HOUR_MS)
      goOn(5000)
      await expectError(await here.call('/pets'), 'revoked_api_key')
    })
  }

  it('the rate limit still refuses for its window only', async () => {
    const { options, goOn, setBack } = startClocks()
    await using petstore = await startPetstore({ env: { PETSTORE_RATE_LIMIT: '1/60' }, ...options })
    assert.equal((await petstore.call('/pets')).status, 200)
    setBack(HOUR_MS)
    const refused = await petstore.call('/pets')
    assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, '60'])
    goOn(60_000)
    assert.equal((await petstore.call('/pets')).status, 200)
  })

  it('a throttled account may still try again after a quarter of an hour', async () => {
    const { options, goOn, setBack } = startClocks()
    await using petstore = await startPetstore(options)
    const client = new ConsoleClient(petstore.url)
    const { email } = petstore.account
    for (let time = 0; time < SIGN_IN_BY_ACCOUNT_AND_ADDRESS.tries; time += 1)
      await client.signIn(email, 'wrong horse battery')
    setBack(HOUR_MS)
    assert.equal((await client.signIn(email, PASSWORD)).headers.get('retry-after'), '900')
    goOn(SIGN_IN_BY_ACCOUNT_AND_ADDRESS.withinMs)
    assert.equal((await client.signIn(email, PASSWORD)).status, 303)
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  PASSWORD_BY_SESSION,
  PasswordTries,
  SIGN_IN_BY_ACCOUNT,
  SIGN_IN_BY_ACCOUNT_AND_ADDRESS,
  SIGN_IN_BY_ADDRESS,
} from './password-tries.ts'

const WAIT_MS = SIGN_IN_BY_ADDRESS.withinMs
const newTries = () => new PasswordTries(() => 0)
const address = (index: number) => `192.0.2.${index}`

/** Wrong passwords, as many times. */
function guess(tries: PasswordTries, times: number, email: string, from: string): void {
  for (let time = 0; time < times; time += 1)
    assert.equal(tries.take({ email, address: from }), 0, `${email} from ${from}, try ${time}`)
}

describe('tries at a password', () => {
  it('are refused by account and address together, and another address is not locked out', () => {
    const tries = newTries()
    guess(tries, SIGN_IN_BY_ACCOUNT_AND_ADDRESS.tries, 'you@example.com', address(1))
    assert.equal(tries.take({ email: 'YOU@example.com', address: address(1) }), WAIT_MS)
    assert.equal(tries.take({ email: 'you@example.com', address: address(2) }), 0)
    assert.equal(tries.take({ email: 'other@example.com', address: address(1) }), 0)
  })

  it('at one account from many addresses are refused by a looser cap', () => {
    const tries = newTries()
    const each = SIGN_IN_BY_ACCOUNT_AND_ADDRESS.tries
    for (let index = 0; index < SIGN_IN_BY_ACCOUNT.tries / each; index += 1)
      guess(tries, each, 'you@example.com', address(index))
    assert.equal(tries.take({ email: 'you@example.com', address: address(200) }), WAIT_MS)
    assert.equal(tries.take({ email: 'other@example.com', address: address(200) }), 0)
  })

  it('from an address that is refused count against no account, so that it can lock out none', () => {
    const tries = newTries()
    for (let index = 0; index < SIGN_IN_BY_ADDRESS.tries; index += 1)
      guess(tries, 1, `guess${index}@example.com`, address(1))
    for (let time = 0; time < SIGN_IN_BY_ACCOUNT.tries; time += 1) {
      assert.equal(tries.take({ email: 'you@example.com', address: address(1) }), WAIT_MS)
    }
    assert.equal(tries.take({ email: 'you@example.com', address: address(2) }), 0)
  })

  it('at an account that is refused do not count against the address', () => {
    const tries = newTries()
    guess(tries, SIGN_IN_BY_ACCOUNT_AND_ADDRESS.tries, 'you@example.com', address(1))
    for (let time = 0; time < SIGN_IN_BY_ADDRESS.tries; time += 1)
      assert.equal(tries.take({ email: 'you@example.com', address: address(1) }), WAIT_MS)
    assert.equal(tries.take({ email: 'colleague@example.com', address: address(1) }), 0)
  })

  it('that are right do not count, and forgive the same person, but not the address', () => {
    const tries = newTries()
    for (let round = 0; round < 5; round += 1) {
      guess(tries, SIGN_IN_BY_ACCOUNT_AND_ADDRESS.tries - 1, 'you@example.com', address(1))
      const you = { email: 'you@example.com', address: address(1) }
      assert.equal(tries.take(you), 0)
      tries.right(you)
    }
    guess(
      tries,
      SIGN_IN_BY_ADDRESS.tries - 5 * (SIGN_IN_BY_ACCOUNT_AND_ADDRESS.tries - 1),
      'you@example.com',
      address(1),
    )
    assert.equal(tries.take({ email: 'other@example.com', address: address(1) }), WAIT_MS)
  })

  it('that were not made do not count', () => {
    const tries = newTries()
    for (let time = 0; time < 2 * SIGN_IN_BY_ACCOUNT.tries; time += 1) {
      const you = { email: 'you@example.com', address: address(1) }
      assert.equal(tries.take(you), 0)
      tries.unmade(you)
    }
  })

  it('of a signed-in person have a count of their own, by session', () => {
    const tries = newTries()
    for (let time = 0; time < PASSWORD_BY_SESSION.tries; time += 1) assert.equal(tries.take({ session: 'token 1' }), 0)
    assert.equal(tries.take({ session: 'token 1' }), WAIT_MS)
    assert.equal(tries.take({ session: 'token 2' }), 0)
  })
})

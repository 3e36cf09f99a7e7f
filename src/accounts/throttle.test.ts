import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { cpuTime } from '../../test/harness/programs/cpu-time.ts'
import {
  addressGroup,
  type TryLimit,
  createThrottles,
  SIGN_IN_BY_ACCOUNT,
  SIGN_IN_BY_ACCOUNT_AND_ADDRESS,
  SIGN_IN_BY_ADDRESS,
  SIGN_UP_BY_ADDRESS,
  Throttle,
  type Throttles,
} from './throttle.ts'

const NAMES_KEPT = 20_000

function startThrottle(allowance: TryLimit) {
  const clock = { now: 0 }
  const throttle = new Throttle(allowance, () => clock.now)
  /** Counts a try unless it is throttled, as a caller does. */
  const tryAs = (name: string, times = 1) => {
    for (let time = 0; time < times; time += 1) {
      if (throttle.waitMs(name) === 0) throttle.count(name)
    }
  }
  const tryAsMany = (howMany: number, times = 1) => {
    for (let index = 0; index < howMany; index += 1) tryAs(`other ${index}`, times)
  }
  return { clock, throttle, tryAs, tryAsMany }
}

describe('the throttle', () => {
  it('lets so many tries pass in a time, then tells how long to wait, then lets them pass again', () => {
    const { clock, throttle, tryAs } = startThrottle({ tries: 2, withinMs: 500 })
    tryAs('a', 2)
    clock.now += 100
    assert.equal(throttle.waitMs('a'), 400)
    assert.equal(throttle.waitMs('b'), 0)
    clock.now += 400
    assert.equal(throttle.waitMs('a'), 0)
    tryAs('a')
    assert.equal(throttle.waitMs('a'), 0)
    tryAs('a')
    assert.equal(throttle.waitMs('a'), 500)
  })

  it('takes back one count, or all of a name', () => {
    const { throttle, tryAs } = startThrottle({ tries: 2, withinMs: 500 })
    tryAs('a', 2)
    throttle.uncount('a')
    assert.equal(throttle.waitMs('a'), 0)
    tryAs('a')
    assert.equal(throttle.waitMs('a'), 500)
    throttle.forget('a')
    tryAs('a')
    assert.equal(throttle.waitMs('a'), 0)
    throttle.uncount('nobody')
  })

  it('never lets go of a name that is throttled, however many others come', () => {
    const { throttle, tryAs, tryAsMany } = startThrottle({ tries: 3, withinMs: 500 })
    tryAs('throttled', 3)
    tryAsMany(2 * NAMES_KEPT)
    assert.equal(throttle.waitMs('throttled'), 500)
  })

  it('lets go of the lowest counts first, so that a flood of names frees no one who is being guessed at', () => {
    const { throttle, tryAs, tryAsMany } = startThrottle({ tries: 3, withinMs: 500 })
    tryAs('guessed at', 2)
    tryAsMany(2 * NAMES_KEPT)
    tryAs('guessed at')
    assert.equal(throttle.waitMs('guessed at'), 500)
  })

  it('lets go of what has expired before what still counts', () => {
    const { clock, throttle, tryAs, tryAsMany } = startThrottle({ tries: 3, withinMs: 500 })
    tryAsMany(NAMES_KEPT - 1, 2)
    clock.now += 250
    tryAs('of late')
    clock.now += 250
    tryAs('one more')
    tryAs('of late', 2)
    assert.equal(throttle.waitMs('of late'), 250)
  })

  it('keeps as many names when some come again after their time as when all are new', () => {
    const { clock, throttle, tryAs, tryAsMany } = startThrottle({ tries: 3, withinMs: 500 })
    tryAs('comes again', 2)
    clock.now += 500
    tryAs('comes again')
    tryAsMany(NAMES_KEPT - 1, 2)
    for (let index = 0; index < 100; index += 1) tryAs(`later ${index}`, 2)
    tryAsMany(NAMES_KEPT - 1)
    let throttled = 0
    for (let index = 0; index < NAMES_KEPT - 1; index += 1) if (throttle.waitMs(`other ${index}`) > 0) throttled += 1
    assert.ok(throttled <= NAMES_KEPT - 100, `${throttled} were kept`)
  })

  it('lets new names pass uncounted while all that it keeps are throttled', () => {
    const { throttle, tryAs, tryAsMany } = startThrottle({ tries: 1, withinMs: 500 })
    tryAsMany(NAMES_KEPT)
    tryAs('one more', 2)
    assert.equal(throttle.waitMs('one more'), 0)
    assert.equal(throttle.waitMs('other 0'), 500)
  })

  it('takes as much memory for a long name as for a short one, and no more with ever more names', () => {
    const { tryAs, tryAsMany } = startThrottle({ tries: 3, withinMs: 500 })
    tryAsMany(NAMES_KEPT)
    const before = process.memoryUsage().heapUsed
    for (let index = 0; index < NAMES_KEPT; index += 1) tryAs(`${index}${'x'.repeat(16_384)}`)
    const grownMiB = (process.memoryUsage().heapUsed - before) / 2 ** 20
    assert.ok(grownMiB < 150, `${grownMiB} MiB for 20,000 names of 16 KiB`)
  })

  it('takes no longer for a try when it is full', async () => {
    const { tryAs, tryAsMany } = startThrottle({ tries: 3, withinMs: 500 })
    const timed = (prefix: string) =>
      cpuTime(() => {
        for (let index = 0; index < NAMES_KEPT; index += 1) tryAs(`${prefix} ${index}`)
      })
    const filling = await timed('first')
    // A search through all names for each of them would take thousands of times as long.
    const full = Math.min(await timed('second'), await timed('third'))
    assert.ok(full < 50 * filling, `${filling} ms, then ${full} ms`)
    tryAsMany(1)
  })

  it('counts an IPv6 network of 64 bits as one address', () => {
    assert.equal(addressGroup('2001:db8:1:2:3:4:5:6'), '2001:db8:1:2::/64')
    assert.equal(addressGroup('2001:db8:1:2::9'), '2001:db8:1:2::/64')
    assert.equal(addressGroup('::1'), '0:0:0:0::/64')
    // The zeros that are left out may lie within these 64 bits.
    assert.equal(addressGroup('2001::2:3:4:5:6'), '2001:0:0:2::/64')
    assert.equal(addressGroup('2001:db8::'), '2001:db8:0:0::/64')
    assert.equal(addressGroup('::ffff:198.251.100.250'), '198.251.100.250')
    assert.equal(addressGroup('192.0.2.7'), '192.0.2.7')
  })
})

const WAIT_MS = SIGN_IN_BY_ADDRESS.withinMs
const newTries = (processes = 1) => createThrottles(() => 0, processes)
const address = (index: number) => `192.0.2.${index}`

/** Tries a wrong password this many times. */
function guess(tries: Throttles, times: number, email: string, from: string): void {
  for (let time = 0; time < times; time += 1)
    assert.equal(tries.takeTry({ email, address: from }), 0, `${email} from ${from}, try ${time}`)
}

describe('tries at a password', () => {
  it('are as many as the documents promise', () => {
    const read = (path: string) =>
      readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8').replaceAll(/\s+/g, ' ')
    const minutes = WAIT_MS / 60_000
    const [pair, byAddress, byAccount] = [SIGN_IN_BY_ACCOUNT_AND_ADDRESS, SIGN_IN_BY_ADDRESS, SIGN_IN_BY_ACCOUNT].map(
      ({ tries }) => tries,
    )
    const promised = `${pair} wrong passwords in ${minutes} minutes per account and address, ${byAddress} per address, ${byAccount} per account`
    assert.ok(read('SECURITY.md').includes(promised), promised)
  })

  it('at one account from many addresses are refused by a looser cap', () => {
    const tries = newTries()
    const each = SIGN_IN_BY_ACCOUNT_AND_ADDRESS.tries
    for (let index = 0; index < SIGN_IN_BY_ACCOUNT.tries / each; index += 1)
      guess(tries, each, 'you@example.com', address(index))
    assert.equal(tries.takeTry({ email: 'you@example.com', address: address(200) }), WAIT_MS)
    assert.equal(tries.takeTry({ email: 'other@example.com', address: address(200) }), 0)
  })

  it('at an account that is refused do not count against the address', () => {
    const tries = newTries()
    guess(tries, SIGN_IN_BY_ACCOUNT_AND_ADDRESS.tries, 'you@example.com', address(1))
    for (let time = 0; time < SIGN_IN_BY_ADDRESS.tries; time += 1)
      assert.equal(tries.takeTry({ email: 'you@example.com', address: address(1) }), WAIT_MS)
    assert.equal(tries.takeTry({ email: 'colleague@example.com', address: address(1) }), 0)
  })

  it('that are right do not count, and forgive the same person, but not the address', () => {
    const tries = newTries()
    for (let round = 0; round < 5; round += 1) {
      guess(tries, SIGN_IN_BY_ACCOUNT_AND_ADDRESS.tries - 1, 'you@example.com', address(1))
      const you = { email: 'you@example.com', address: address(1) }
      assert.equal(tries.takeTry(you), 0)
      tries.passwordWasRight(you)
    }
    guess(
      tries,
      SIGN_IN_BY_ADDRESS.tries - 5 * (SIGN_IN_BY_ACCOUNT_AND_ADDRESS.tries - 1),
      'you@example.com',
      address(1),
    )
    assert.equal(tries.takeTry({ email: 'other@example.com', address: address(1) }), WAIT_MS)
  })

  it('and sign-ups count together where they come from one IPv6 network of 64 bits', () => {
    const tries = newTries()
    const [network, other] = ['2001:db8:1:2', '2001:db8:1:3']
    for (let index = 0; index < SIGN_IN_BY_ADDRESS.tries; index += 1)
      guess(tries, 1, `guess${index}@example.com`, `${network}::${index}`)
    assert.equal(tries.takeTry({ email: 'you@example.com', address: `${network}::ffff` }), WAIT_MS)
    assert.equal(tries.takeTry({ email: 'you@example.com', address: `${other}::1` }), 0)
    guess(tries, SIGN_IN_BY_ACCOUNT_AND_ADDRESS.tries - 1, 'you@example.com', `${other}::2`)
    assert.equal(tries.takeTry({ email: 'you@example.com', address: `${other}::3` }), WAIT_MS)
    for (let index = 0; index < SIGN_UP_BY_ADDRESS.tries; index += 1)
      assert.equal(tries.takeTry({ signUp: `${network}::${index}` }), 0)
    assert.equal(tries.takeTry({ signUp: `${network}::ffff` }), SIGN_UP_BY_ADDRESS.withinMs)
    assert.equal(tries.takeTry({ signUp: `${other}::1` }), 0)
  })

  it('are divided among the processes of an instance by address and by account, at least ten for each, and not by both', () => {
    for (const [processes, byAddress, byAccount, signUps] of [
      [1, 50, 100, 20],
      [2, 25, 50, 10],
      [3, 16, 33, 10],
      [5, 10, 20, 10],
      [64, 10, 10, 10],
    ] as const) {
      const tries = newTries(processes)
      const countUntilRefused = (take: (index: number) => number) => {
        let count = 0
        while (count < 1000 && take(count) === 0) count += 1
        return count
      }
      const ofOthers = (index: number) => tries.takeTry({ email: `guess${index}@example.com`, address: address(1) })
      const fromOthers = (index: number) => tries.takeTry({ email: 'you@example.com', address: `198.51.100.${index}` })
      const own = () => tries.takeTry({ email: 'me@example.com', address: address(2) })
      const wrongLink = () => tries.takeTry({ link: address(1) })
      const signUp = () => tries.takeTry({ signUp: address(1) })
      assert.deepEqual(
        [ofOthers, fromOthers, own, wrongLink, signUp].map(countUntilRefused),
        [byAddress, byAccount, 10, byAddress, signUps],
        `${processes} processes`,
      )
    }
  })
})

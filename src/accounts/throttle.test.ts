import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { addressGroup, Throttle } from './throttle.ts'

describe('the throttle', () => {
  it('lets so many tries pass in a time, then tells how long to wait, then lets them pass again', () => {
    let now = 1000
    const throttle = new Throttle({ tries: 2, withinMs: 500 }, () => now)
    assert.deepEqual([throttle.take('a'), throttle.take('a')], [0, 0])
    now += 100
    assert.equal(throttle.take('a'), 400)
    assert.equal(throttle.take('b'), 0)
    now += 400
    assert.equal(throttle.take('a'), 0)
  })

  it('forgets what was counted after a try that was right', () => {
    const throttle = new Throttle({ tries: 1, withinMs: 500 }, () => 0)
    throttle.take('a')
    throttle.forgive('a')
    assert.equal(throttle.take('a'), 0)
  })

  it('keeps a bounded number of names, and lets go of the oldest', () => {
    const throttle = new Throttle({ tries: 1, withinMs: 500 }, () => 0)
    throttle.take('first')
    for (let index = 0; index < 20_000; index += 1) throttle.take(`other ${index}`)
    assert.equal(throttle.take('first'), 0)
    assert.equal(throttle.take('other 19999'), 500)
  })

  it('lets go of a name by its latest window, so that a flood of names frees no one who is being guessed at', () => {
    let now = 0
    const throttle = new Throttle({ tries: 1, withinMs: 500 }, () => now)
    throttle.take('guessed')
    throttle.take('older by then')
    now += 500
    throttle.take('guessed')
    for (let index = 0; index < 19_999; index += 1) throttle.take(`other ${index}`)
    assert.equal(throttle.take('guessed'), 500)
  })

  it('counts an IPv6 network of 64 bits as one address', () => {
    assert.equal(addressGroup('2001:db8:1:2:3:4:5:6'), '2001:db8:1:2::/64')
    assert.equal(addressGroup('2001:db8:1:2::9'), '2001:db8:1:2::/64')
    assert.equal(addressGroup('::1'), '0:0:0:0::/64')
    assert.equal(addressGroup('::ffff:192.0.2.7'), '192.0.2.7')
    assert.equal(addressGroup('192.0.2.7'), '192.0.2.7')
  })
})

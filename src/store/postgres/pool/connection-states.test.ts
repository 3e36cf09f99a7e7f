// How connections are counted by their states, and which one a short read joins.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Connection } from './connection.ts'
import { ConnectionStates } from './connection-states.ts'

const connection = (isBroken = false) => ({ closed: isBroken }) as unknown as Connection

describe('the states of connections', () => {
  it('are counted; a write counts while it uses a connection or is parked, and an end only with the last call', ({
    mock,
  }) => {
    mock.method(performance, 'now', () => 0)
    const states = new ConnectionStates()
    const [one, shared, gone] = [connection(), connection(), connection()]
    for (const each of [one, shared, gone]) states.add(each)
    states.begin(one, 'write', false)
    states.begin(shared, 'read', true)
    states.begin(gone, 'write', false)
    states.join()
    assert.deepEqual([states.count('in use'), states.writes], [3, 2])
    states.remove(gone)
    states.move(gone, 'idle')
    assert.deepEqual([states.count(), states.end(gone), states.writes], [2, false, 1], 'one that is gone stays so')
    states.move(one, 'parked')
    assert.deepEqual([states.all('parked'), states.writes], [[one], 1])
    assert.deepEqual([states.end(one), states.end(shared), states.end(shared)], [false, false, true])
    states.move(one, 'idle')
    states.move(shared, 'idle')
    assert.deepEqual([states.all('idle'), states.writes], [[one, shared], 0])
  })
})

describe('a short read that finds no free connection', () => {
  it('joins the one with the fewest reads, and none that is broken or has another call', ({ mock }) => {
    mock.method(performance, 'now', () => 0)
    const states = new ConnectionStates()
    const [unshared, broken, one, other] = [connection(), connection(true), connection(), connection()]
    for (const each of [unshared, broken, one, other]) states.add(each)
    states.begin(unshared, 'read', false)
    states.begin(broken, 'read', true)
    assert.equal(states.join(), undefined)
    states.begin(one, 'read', true)
    assert.equal(states.join(), one)
    states.begin(other, 'read', true)
    assert.deepEqual([states.join() === other, states.join() === one, states.join() === other], [true, true, true])
  })

  it('joins none whose oldest read takes long, until that is answered', ({ mock }) => {
    let now = 0
    mock.method(performance, 'now', () => now)
    const states = new ConnectionStates()
    const slow = connection()
    states.add(slow)
    states.begin(slow, 'read', true)
    const joinedAt = (time: number) => {
      now = time
      return states.join() === slow
    }
    assert.deepEqual([joinedAt(20), joinedAt(21)], [true, false])
    assert.equal(states.end(slow), false, 'the other read goes on')
    assert.deepEqual([joinedAt(41), joinedAt(42)], [true, false])
  })
})

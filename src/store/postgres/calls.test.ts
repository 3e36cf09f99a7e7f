// Calls that wait for a connection: each is served or refused once, and leaves nothing behind that touches another. Which
// connection a short read joins.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { StoreUnavailable } from '../store.ts'
import { type Kind, Uses, WaitingCalls } from './calls.ts'
import type { Connection } from './connection.ts'

const LIMIT_MS = 20
const busy = () => new StoreUnavailable('busy')
const closed = new StoreUnavailable('closed')

describe('calls that wait for a connection', { timeout: 10_000 }, () => {
  for (const kind of ['read', 'write'] satisfies Kind[]) {
    const leave: Record<string, (calls: WaitingCalls) => void> = {
      'was served': (calls) => assert.ok(calls.next(true)),
      'was refused because the store was closed': (calls) => calls.refuseAll(closed),
      'was refused after its time': () => {},
    }
    for (const [how, act] of Object.entries(leave)) {
      it(`keep their place when the time of an earlier ${kind} is over that ${how}`, async () => {
        const calls = new WaitingCalls()
        calls.add(kind, false, LIMIT_MS, busy).catch(() => {})
        act(calls)
        const later = assert.rejects(calls.add(kind, false, 60_000, busy), closed)
        await setTimeout(3 * LIMIT_MS)
        assert.deepEqual([calls.count(kind), calls.isEmpty], [1, false])
        calls.refuseAll(closed)
        await later
      })
    }
  }

  it('are served in the order they came; a write that may not run yet is passed over and keeps its place', ({
    mock,
  }) => {
    let now = 0
    mock.method(performance, 'now', () => now++)
    const calls = new WaitingCalls()
    const kinds: Kind[] = ['read', 'write', 'write', 'read', 'read', 'write']
    for (const kind of kinds) calls.add(kind, false, 60_000, busy).catch(() => {})
    const served = (...mayWrite: boolean[]) => mayWrite.map((may) => calls.next(may)?.since)
    assert.deepEqual(served(true, true, false, true, true, false, true), [0, 1, 3, 2, 4, undefined, 5])
    assert.deepEqual([calls.isEmpty, calls.next(true)], [true, undefined])
  })
})

const connection = (isBroken = false) => ({ closed: isBroken }) as unknown as Connection

describe('the connections in use', () => {
  it('are counted, those for writes too, until their last call has ended or they are gone', ({ mock }) => {
    mock.method(performance, 'now', () => 0)
    const uses = new Uses()
    const [one, shared, gone] = [connection(), connection(), connection()]
    uses.begin(one, 'write', false)
    uses.begin(shared, 'read', true)
    uses.begin(gone, 'write', false)
    uses.join()
    assert.deepEqual([uses.count, uses.writes], [3, 2])
    uses.forget(gone)
    assert.deepEqual([uses.count, uses.writes], [2, 1])
    assert.deepEqual([uses.end(shared), uses.end(shared), uses.count], [false, true, 1])
    assert.deepEqual([uses.end(one), uses.count, uses.writes], [true, 0, 0])
  })
})

describe('a short read that finds no free connection', () => {
  it('joins the one with the fewest reads, and none that is broken or has another call', ({ mock }) => {
    mock.method(performance, 'now', () => 0)
    const uses = new Uses()
    const [one, other] = [connection(), connection()]
    uses.begin(connection(), 'read', false)
    uses.begin(connection(true), 'read', true)
    assert.equal(uses.join(), undefined)
    uses.begin(one, 'read', true)
    assert.equal(uses.join(), one)
    uses.begin(other, 'read', true)
    assert.deepEqual([uses.join() === other, uses.join() === one, uses.join() === other], [true, true, true])
  })

  it('joins none whose oldest read takes long, until that is answered', ({ mock }) => {
    let now = 0
    mock.method(performance, 'now', () => now)
    const uses = new Uses()
    const slow = connection()
    uses.begin(slow, 'read', true)
    const joinedAt = (time: number) => {
      now = time
      return uses.join() === slow
    }
    assert.deepEqual([joinedAt(20), joinedAt(21)], [true, false])
    assert.equal(uses.end(slow), false, 'the other read goes on')
    assert.deepEqual([joinedAt(41), joinedAt(42)], [true, false])
  })
})

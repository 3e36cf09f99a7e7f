// Calls that wait for a connection: each is served or refused once, and leaves nothing behind that touches another.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { StoreUnavailable } from '../../store.ts'
import type { Kind } from './connection.ts'
import { WaitingCalls } from './waiting-calls.ts'

const LIMIT_MS = 20
const busy = () => new StoreUnavailable('busy')
const closed = new StoreUnavailable('closed')

describe('calls that wait for a connection', () => {
  for (const kind of ['read', 'write'] satisfies Kind[]) {
    const leave: Record<string, (calls: WaitingCalls) => void> = {
      'was served': (calls) => assert.ok(calls.next(true)),
      'was refused because the store was closed': (calls) => calls.refuseAll(closed),
      'was refused after its time': () => {},
    }
    for (const [how, act] of Object.entries(leave)) {
      it(`keep their place when the time of an earlier ${kind} is over that ${how}`, async ({ mock }) => {
        mock.timers.enable({ apis: ['setTimeout'] })
        const calls = new WaitingCalls()
        calls.add(kind, false, LIMIT_MS, busy).catch(() => {})
        act(calls)
        const later = assert.rejects(calls.add(kind, false, 60_000, busy), closed)
        mock.timers.tick(3 * LIMIT_MS)
        assert.equal(calls.count(kind), 1)
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
    assert.equal(calls.next(true), undefined)
  })
})

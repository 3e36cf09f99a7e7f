// The calls of a pool that wait for a connection.
import type { StoreUnavailable } from '../../store.ts'
import type { Connection, Kind } from './connection.ts'

interface WaitingCall extends PromiseWithResolvers<Connection> {
  kind: Kind
  /** Whether short reads may join the connection while the call uses it. */
  isShared: boolean
  since: number
  timer: NodeJS.Timeout
}

/** The waiting calls, in two queues: a write may have to wait longer than a read that came after it. */
export class WaitingCalls {
  readonly #queues: Record<Kind, WaitingCall[]> = { read: [], write: [] }

  count(kind: Kind): number {
    return this.#queues[kind].length
  }

  /** Resolves with a connection; rejects with `refusal()` after `limitMs`. */
  add(kind: Kind, isShared: boolean, limitMs: number, refusal: () => StoreUnavailable): Promise<Connection> {
    const queue = this.#queues[kind]
    const timer = setTimeout(() => {
      queue.splice(queue.indexOf(call), 1)
      call.reject(refusal())
    }, limitMs)
    const since = performance.now()
    const call: WaitingCall = { ...Promise.withResolvers<Connection>(), kind, isShared, since, timer }
    queue.push(call)
    return call.promise
  }

  /** Removes and returns the call that has waited longest; skips writes unless `mayWrite`. */
  next(mayWrite: boolean): WaitingCall | undefined {
    const { read, write } = this.#queues
    const writeFirst = mayWrite && write.length > 0 && (read.length === 0 || write[0]!.since < read[0]!.since)
    const call = (writeFirst ? write : read).shift()
    clearTimeout(call?.timer)
    return call
  }

  refuseAll(error: StoreUnavailable): void {
    for (const call of Object.values(this.#queues).flatMap((queue) => queue.splice(0))) {
      clearTimeout(call.timer)
      call.reject(error)
    }
  }
}

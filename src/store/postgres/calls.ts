// Keeps track of the calls of a pool: those that wait for a connection, and those that use one.
import type { StoreUnavailable } from '../store.ts'
import type { Connection } from './connection.ts'

/** A read has no effect, so it can be retried and abandoned; a write can't. */
export type Kind = 'read' | 'write'

/** How many short reads may be in progress on one connection. */
const SHARED_BY = 8

/** A short read takes about a millisecond. No other read joins a connection whose oldest read has taken longer than this. */
const JOINABLE_FOR_MS = 20

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

  get isEmpty(): boolean {
    return this.#queues.read.length === 0 && this.#queues.write.length === 0
  }

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

interface Use {
  kind: Kind
  isShared: boolean
  calls: number
  /** When the server can have begun with the oldest call. */
  since: number
}

/** The connections in use, each by one call or by several short reads. */
export class Uses {
  readonly #uses = new Map<Connection, Use>()

  get count(): number {
    return this.#uses.size
  }

  get writes(): number {
    let writes = 0
    for (const { kind } of this.#uses.values()) if (kind === 'write') writes += 1
    return writes
  }

  begin(connection: Connection, kind: Kind, isShared: boolean): Connection {
    this.#uses.set(connection, { kind, isShared, calls: 1, since: performance.now() })
    return connection
  }

  /** Adds a short read to the shared connection with the fewest reads, and returns it; undefined if none has room. */
  join(): Connection | undefined {
    const now = performance.now()
    let found: Connection | undefined
    let fewest = SHARED_BY
    for (const [connection, { isShared, calls, since }] of this.#uses) {
      if (!isShared || calls >= fewest || connection.closed || now - since > JOINABLE_FOR_MS) continue
      found = connection
      fewest = calls
    }
    if (found !== undefined) this.#uses.get(found)!.calls += 1
    return found
  }

  /** Removes a call that has ended. Returns whether it was the connection's last call. */
  end(connection: Connection): boolean {
    const use = this.#uses.get(connection)
    if (use === undefined || use.calls === 1) {
      this.#uses.delete(connection)
      return true
    }
    use.calls -= 1
    use.since = performance.now()
    return false
  }

  forget(connection: Connection): void {
    this.#uses.delete(connection)
  }
}

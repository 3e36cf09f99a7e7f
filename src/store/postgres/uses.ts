// Which connections are in use, for what, and by how many calls: short reads may share one.
import type { Connection } from './connection.ts'
import type { Kind } from './waiting-calls.ts'

/** How many short reads may be under way on one connection. */
const SHARED_BY = 8

/** A short read is answered in about a millisecond; nobody joins one that takes longer than this. */
const JOINED_WITHIN_MS = 20

interface Use {
  kind: Kind
  isShared: boolean
  calls: number
  /** Since when the oldest call has been worked on. */
  since: number
}

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

  /** Adds a call to the connection with the fewest, of those that short reads share; undefined if none has room. */
  join(): Connection | undefined {
    const now = performance.now()
    let found: Connection | undefined
    let fewest = SHARED_BY
    for (const [connection, { isShared, calls, since }] of this.#uses) {
      if (!isShared || calls >= fewest || connection.closed || now - since > JOINED_WITHIN_MS) continue
      found = connection
      fewest = calls
    }
    if (found !== undefined) this.#uses.get(found)!.calls += 1
    return found
  }

  /** A call has ended. Returns whether it was the last one. */
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

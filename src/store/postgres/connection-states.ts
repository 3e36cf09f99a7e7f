// The state of each connection of a pool; the head of connections.ts draws the ways between them. Counts follow from the states.
import type { Connection } from './connection.ts'
import type { Kind } from './waiting-calls.ts'

type State =
  /** `probed`: it is unknown whether the server answers. `parked`: its write is overdue. `closing`: it gets no more calls. */
  | { readonly is: 'idle' | 'probed' | 'parked' | 'closing' }
  | {
      readonly is: 'in use'
      readonly kind: Kind
      /** Whether short reads may join. */
      readonly isShared: boolean
      calls: number
      /** When the server can have begun with the oldest call. */
      since: number
    }

type StateName = State['is']

/** How many short reads may be in progress on one connection. */
const SHARED_BY = 8

/** A short read takes about a millisecond. No other read joins a connection whose oldest read has taken longer than this. */
const JOINABLE_FOR_MS = 20

interface Entry {
  readonly connection: Connection
  state: State
}

export class ConnectionStates {
  /** In the order of opening. Iterating over an array costs less than the look-ups of a map save. */
  readonly #entries: Entry[] = []

  /** Returns the connections in this state, or in any. */
  all(name?: StateName): Connection[] {
    const found: Connection[] = []
    for (const { connection, state } of this.#entries)
      if (name === undefined || state.is === name) found.push(connection)
    return found
  }

  count(name?: StateName): number {
    return name === undefined ? this.#entries.length : this.all(name).length
  }

  /** How many connections have a write: those in use by one, and the parked ones. */
  get writes(): number {
    let count = 0
    for (const { state } of this.#entries)
      if (state.is === 'parked' || (state.is === 'in use' && state.kind === 'write')) count += 1
    return count
  }

  /** The idle connection that was opened last, or undefined. Always the same few are used, as many as the load needs. */
  get idle(): Connection | undefined {
    return this.#entries.findLast(({ state }) => state.is === 'idle')?.connection
  }

  /** Adds a connection that was just opened, which ends with a probe. */
  add(connection: Connection): void {
    this.#entries.push({ connection, state: { is: 'probed' } })
  }

  /** Has no effect on a connection that is gone. */
  move(connection: Connection, is: Exclude<StateName, 'in use'>): void {
    const entry = this.#find(connection)
    if (entry !== undefined) entry.state = { is }
  }

  begin(connection: Connection, kind: Kind, isShared: boolean): Connection {
    this.#find(connection)!.state = { is: 'in use', kind, isShared, calls: 1, since: performance.now() }
    return connection
  }

  /** Adds a short read to the shared connection with the fewest reads, and returns it; undefined if none has room. */
  join(): Connection | undefined {
    const now = performance.now()
    let joined: Connection | undefined
    let fewest: (State & { is: 'in use' }) | undefined
    for (const { connection, state } of this.#entries) {
      if (state.is !== 'in use' || !state.isShared || state.calls >= (fewest?.calls ?? SHARED_BY)) continue
      if (connection.closed || now - state.since > JOINABLE_FOR_MS) continue
      joined = connection
      fewest = state
    }
    if (fewest !== undefined) fewest.calls += 1
    return joined
  }

  /** Ends a call. Returns whether it was the connection's last one; false also if the connection is gone. */
  end(connection: Connection): boolean {
    const state = this.#find(connection)?.state
    if (state?.is !== 'in use') return false
    state.calls -= 1
    state.since = performance.now()
    return state.calls === 0
  }

  remove(connection: Connection): void {
    const entry = this.#find(connection)
    if (entry !== undefined) this.#entries.splice(this.#entries.indexOf(entry), 1)
  }

  #find(connection: Connection): Entry | undefined {
    return this.#entries.find((entry) => entry.connection === connection)
  }
}

// The state of each connection of a pool; the head of connections.ts draws the ways between them. Counts follow from the states.
import type { Connection, Kind, State } from './connection.ts'

type StateName = State['is']

/** How many short reads may be in progress on one connection. */
const SHARED_BY = 8

/** A short read takes about a millisecond. No other read joins a connection whose oldest read has taken longer than this. */
const JOINABLE_FOR_MS = 20

export class ConnectionStates {
  /** In the order of opening. */
  #connections: Connection[] = []

  /** Returns the connections in this state, or in any. */
  all(name?: StateName): Connection[] {
    return this.#connections.filter(({ state }) => name === undefined || state.is === name)
  }

  count(name?: StateName): number {
    return name === undefined ? this.#connections.length : this.all(name).length
  }

  /** How many connections have a write: those in use by one, and the parked ones. */
  get writes(): number {
    const hasWrite = (state: State) => state.is === 'parked' || (state.is === 'in use' && state.kind === 'write')
    return this.#connections.filter(({ state }) => hasWrite(state)).length
  }

  /** The idle connection that was opened last, or undefined. Always the same few are used, as many as the load needs. */
  get idle(): Connection | undefined {
    return this.#connections.findLast(({ state }) => state.is === 'idle')
  }

  /** The connections that no call has used for this time. */
  unused(ms: number): Connection[] {
    const before = performance.now() - ms
    return this.#connections.filter(({ state }) => state.is === 'idle' && state.since < before)
  }

  add(connection: Connection): void {
    this.#connections.push(connection)
    this.move(connection, 'idle')
  }

  move(connection: Connection, is: Exclude<StateName, 'in use'>): void {
    connection.state = is === 'idle' ? { is, since: performance.now() } : { is }
  }

  begin(connection: Connection, kind: Kind, isShared: boolean): Connection {
    connection.state = { is: 'in use', kind, isShared, calls: 1, since: performance.now() }
    return connection
  }

  /** Adds a short read to the shared connection with the fewest reads, and returns it; undefined if none has room. */
  join(): Connection | undefined {
    const now = performance.now()
    let joined: Connection | undefined
    let fewest: (State & { is: 'in use' }) | undefined
    for (const connection of this.#connections) {
      const { state } = connection
      if (state.is !== 'in use' || !state.isShared || state.calls >= (fewest?.calls ?? SHARED_BY)) continue
      if (connection.closed || now - state.since > JOINABLE_FOR_MS) continue
      joined = connection
      fewest = state
    }
    if (fewest !== undefined) fewest.calls += 1
    return joined
  }

  /** Ends a call. Returns whether it was the connection's last one; false also if the connection is gone. */
  end({ state }: Connection): boolean {
    if (state.is !== 'in use') return false
    state.calls -= 1
    state.since = performance.now()
    return state.calls === 0
  }

  remove(connection: Connection): void {
    this.move(connection, 'closing')
    this.#connections = this.#connections.filter((each) => each !== connection)
  }
}

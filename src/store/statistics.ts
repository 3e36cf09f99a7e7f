// What an engine counts of itself, for metrics and alerts.

/** Commits, and the writes in them. PostgreSQL counts only creates without idempotency key, which share commits. */
export interface CommitStats {
  commits: number
  writes: number
}

export interface ConnectionStats {
  inUse: number
  idle: number
  /** Connections of overdue writes, kept open until the answer comes. */
  parked: number
  waiting: number
  /** Each server that a connection leads to: more than one after a failover, or if a name leads to several. */
  servers: readonly DatabaseServer[]
}

/** What a server of the database says of itself. */
interface DatabaseServer {
  host: string
  role: 'primary' | 'standby'
  /** Tells it from every other server, whatever its name: when it was started, in microseconds since 1970. */
  startedAt: string
  timeline: number | undefined
}

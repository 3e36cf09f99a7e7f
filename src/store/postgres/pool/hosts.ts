// Opens connections to the first host that accepts them. Refuses a replaced primary and reports changes of the server.
import { type Report, StoreUnavailable } from '../../store.ts'
import { Connection, type ServerFacts } from './connection.ts'
import { type ConnectionSettings, hostAndPort } from './connection-settings.ts'
import { explain, publicReasonOf } from './failures.ts'

export class Hosts {
  readonly #settings: ConnectionSettings
  readonly #report: Report
  /** The connection that was opened last; it may have ended. Its host is tried first. */
  last: Connection | undefined
  #isLost = false
  /**
   * The highest timeline seen of each cluster. A primary on a lower timeline was replaced and does not know it yet: the writes
   * that it accepts are lost. This is defence in depth: only fencing by the cluster manager rules that out.
   */
  readonly #timelines = new Map<string, number>()

  constructor(settings: ConnectionSettings, report: Report) {
    this.#settings = settings
    this.#report = report
  }

  /** Connects to one of the hosts; throws `StoreUnavailable` with the reason of each host. */
  async open(onGone: (connection: Connection) => void): Promise<Connection> {
    const { hosts } = this.#settings
    const problems: string[] = []
    let publicReason: string | undefined
    const last = hosts.find((host) => hostAndPort(host) === this.last?.host)
    for (const host of new Set([last ?? hosts[0]!, ...hosts])) {
      try {
        const connection = await Connection.open(this.#settings, host, onGone)
        this.#requireCurrent(connection)
        this.#reportServer(connection)
        return connection
      } catch (error) {
        problems.push(`${hostAndPort(host)}: ${explain(error)}`)
        publicReason ??= publicReasonOf(error)
      }
    }
    throw new StoreUnavailable(`Cannot connect to PostgreSQL at ${problems.join('; ')}`, { publicReason })
  }

  /** Whether this primary was replaced: another server of its cluster has been promoted since. */
  isOutdated({ timeline }: ServerFacts): boolean {
    return timeline !== undefined && timeline.number < (this.#timelines.get(timeline.system) ?? 0)
  }

  /** Reports that no host works, once. */
  reportLost(reason: string): void {
    if (this.#isLost) return
    this.#isLost = true
    this.#report({ level: 'error', message: 'database lost', details: { reason } })
  }

  #requireCurrent(connection: Connection): void {
    const { timeline } = connection.server
    if (timeline === undefined) return
    if (!this.isOutdated(connection.server)) return void this.#timelines.set(timeline.system, timeline.number)
    connection.destroy()
    const seen = `it is on timeline ${timeline.number}, but ${this.#timelines.get(timeline.system)} was seen before`
    throw new StoreUnavailable(
      `${seen}: a primary that was replaced (restart this instance if you went back to an earlier state on purpose)`,
      { publicReason: 'The database is a primary that was replaced.' },
    )
  }

  #reportServer(connection: Connection): void {
    const { host, server } = connection
    const { last } = this
    this.last = connection
    const isOther = last !== undefined && (last.host !== host || last.server.startedAt !== server.startedAt)
    const message = this.#isLost ? 'database found' : 'database server was replaced or restarted'
    const details = { host, before: last?.host, role: server.role }
    if (this.#isLost || isOther) this.#report({ level: 'notice', message, details })
    this.#isLost = false
  }
}

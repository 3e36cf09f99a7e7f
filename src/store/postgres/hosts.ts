// Opens connections to the first host that accepts them. Refuses a replaced primary and reports changes of the server.
import { type Report, StoreUnavailable } from '../store.ts'
import { Connection, type ServerFacts } from './connection.ts'
import { type ConnectionSettings, hostAndPort } from './connection-settings.ts'
import { explain } from './failures.ts'

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
  /** The hosts and timelines of outdated primaries that were reported. */
  readonly #reportedAsOutdated = new Set<string>()

  constructor(settings: ConnectionSettings, report: Report) {
    this.#settings = settings
    this.#report = report
  }

  /** Connects to one of the hosts; throws `StoreUnavailable` with the reason of each host. */
  async open(onGone: (connection: Connection) => void): Promise<Connection> {
    const { hosts } = this.#settings
    const problems: string[] = []
    const first = Math.max(
      0,
      hosts.findIndex((host) => hostAndPort(host) === this.last?.host),
    )
    for (let tried = 0; tried < hosts.length; tried += 1) {
      const index = (first + tried) % hosts.length
      try {
        const connection = await Connection.open(this.#settings, hosts[index]!, onGone)
        this.#requireCurrent(connection)
        this.#reportServer(connection)
        return connection
      } catch (error) {
        problems.push(`${hostAndPort(hosts[index]!)}: ${explain(error)}`)
      }
    }
    throw new StoreUnavailable(`Cannot connect to PostgreSQL at ${problems.join('; ')}`)
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
    const { server, host } = connection
    const { timeline } = server
    if (timeline === undefined) return
    const highest = this.#timelines.get(timeline.system) ?? 0
    if (timeline.number >= highest) {
      this.#timelines.set(timeline.system, timeline.number)
      return
    }
    connection.destroy()
    const what = `it is on timeline ${timeline.number}, but ${highest} was seen before: a primary that was replaced`
    if (!this.#reportedAsOutdated.has(`${host} ${what}`)) {
      this.#reportedAsOutdated.add(`${host} ${what}`)
      const message =
        'database outdated: not used; restart this instance if you went back to an earlier state on purpose'
      this.#report({ level: 'error', message, details: { host, timeline: timeline.number, highest } })
    }
    throw new Error(what)
  }

  #reportServer(connection: Connection): void {
    const { host, server } = connection
    const { last } = this
    this.last = connection
    if (this.#isLost) this.#report({ level: 'notice', message: 'database found', details: { host, role: server.role } })
    else if (last !== undefined && (last.host !== host || last.server.startedAt !== server.startedAt)) {
      const message =
        last.host === host ? 'database server was replaced or restarted' : 'database switched to another host'
      this.#report({ level: 'notice', message, details: { host, before: last.host, role: server.role } })
    }
    this.#isLost = false
  }
}

// What Prometheus reads off the service at the moment of a scrape: nothing is counted for it in between.
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { Counter, Gauge, type Metric } from 'prom-client'
import { VERSION } from '../contract/operations.ts'
import type { Store } from '../store/store.ts'
import { dueResponse } from './connections.ts'
import type { Readiness } from './readiness.ts'

export interface FrontGauged {
  server: Server
  cache: { lookups: { hits: number; misses: number } }
}

export function frontGauges({ server, cache }: FrontGauged): Metric[] {
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  const inFlight = () =>
    sockets
      .values()
      .filter((socket) => dueResponse(socket))
      .toArray().length
  return [
    gauge('petstore_connections', 'Open connections of clients', () => sockets.size),
    gauge('petstore_requests_in_flight', 'Requests that are not answered yet', inFlight),
    lookups(cache),
  ]
}

export type StoreGauged = Pick<Store, 'connections' | 'commits'>

export function storeGauges(store: StoreGauged): Metric[] {
  return [
    total('petstore_commits_total', 'Commits of data that writes can share', () => store.commits().commits),
    total('petstore_committed_writes_total', 'Writes of data in these commits', () => store.commits().writes),
    databaseConnections(store),
    gauge(
      'petstore_database_calls_waiting',
      'Calls that wait for a connection to the database',
      () => store.connections()?.waiting ?? 0,
    ),
    databaseInfo(store),
  ]
}

/** Returns the gauges of the instance as a whole, which only its first process has. */
export function instanceGauges(readiness: Readiness): Metric[] {
  const build = new Gauge<string>({
    name: 'petstore_build_info',
    help: 'The version that runs',
    labelNames: ['version'],
    registers: [],
  })
  build.set({ version: VERSION }, 1)
  return [
    gauge('petstore_ready', 'Whether /readyz answers 200', async () => ((await readiness()) === undefined ? 1 : 0)),
    build,
  ]
}

function gauge(name: string, help: string, read: () => number | Promise<number>) {
  return new Gauge<string>({
    name,
    help,
    registers: [],
    async collect() {
      this.set(await read())
    },
  })
}

function total(name: string, help: string, read: () => number) {
  return new Counter<string>({
    name,
    help,
    registers: [],
    collect() {
      this.reset()
      this.inc(read())
    },
  })
}

function lookups(cache: FrontGauged['cache']) {
  return new Counter<string>({
    name: 'petstore_cache_lookups_total',
    help: 'Reads by whether their answer was in the cache',
    labelNames: ['result'],
    registers: [],
    collect() {
      this.reset()
      this.inc({ result: 'hit' }, cache.lookups.hits)
      this.inc({ result: 'miss' }, cache.lookups.misses)
    },
  })
}

function databaseConnections(store: StoreGauged) {
  return new Gauge<string>({
    name: 'petstore_database_connections',
    help: 'Connections to the database: in use, idle, or parked until an overdue write is answered',
    labelNames: ['state'],
    registers: [],
    collect() {
      const { inUse = 0, idle = 0, parked = 0 } = store.connections() ?? {}
      for (const [state, count] of Object.entries({ in_use: inUse, idle, parked })) this.set({ state }, count)
    },
  })
}

function databaseInfo(store: StoreGauged) {
  return new Gauge<string>({
    name: 'petstore_database_info',
    help: 'The database server that the last connection was opened to',
    labelNames: ['host', 'role'],
    registers: [],
    // All processes of an instance use the same database.
    aggregator: 'max',
    collect() {
      this.reset()
      const { host, role } = store.connections() ?? {}
      if (host !== undefined) this.set({ host, role: role ?? 'unknown' }, 1)
    },
  })
}

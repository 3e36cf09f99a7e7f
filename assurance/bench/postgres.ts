// npm run bench postgres: compares the service on PostgreSQL with the bare driver, and with bare node:http over that
// driver, on the same database in one run.
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { newPostgresDatabase } from '../harness/engines.ts'
import { figure, spread } from '../harness/percentiles.ts'
import { startPostgres } from '../harness/postgres-server.ts'
import { cpuSeconds } from '../harness/process-tree.ts'
import { parseConnection } from '../../src/store/postgres/pool/connection-settings.ts'
import type { DriverWork } from './driver-work.ts'
import { CONNECTIONS, shoot, type Shot } from './load.ts'
import { requestOf } from './measure.ts'
import { outputOn } from './placement.ts'
import { ROWS } from './rows.ts'
import { fillDatabase, type Server, startScript, startService } from './subjects.ts'

/** The least share that the service must reach of the driver's rate, and of the rate of bare node:http over the driver. */
const AT_LEAST: Record<DriverWork, { ofDriver?: number; ofServer: number }> = {
  'list-20': { ofDriver: 0.6, ofServer: 0.7 },
  'list-cold': { ofServer: 0.7 },
  get: { ofDriver: 0.6, ofServer: 0.7 },
  create: { ofDriver: 0.6, ofServer: 0.7 },
}

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '3' },
    row: { type: 'string' },
  },
})
const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)]

interface Rate {
  perSecond: number
  /** Requests per second of the server's CPU time. */
  perCpuSecond: number
}

const postgres = await startPostgres()
try {
  await using database = await newPostgresDatabase(postgres.url)
  const { poolSize } = parseConnection(database.url)
  const key = await fillDatabase(database.url, 1000)
  await using service = await startService({ url: database.url, key })
  for (const [work, { ofDriver, ofServer }] of Object.entries(AT_LEAST) as [
    DriverWork,
    { ofDriver?: number; ofServer: number },
  ][]) {
    if (values.row !== undefined && values.row !== work) continue
    await using bare = await startBareServer(database.url, work, poolSize)
    const row = ROWS.find(({ id }) => id === work)!
    const shotAt = (server: Server): Shot => ({ ...requestOf(row, server), seconds, connections: CONNECTIONS })
    for (const server of [bare, service]) await shoot(shotAt(server))
    const measured: { driver: number; bare: Rate; service: Rate }[] = []
    for (let round = 0; round < rounds; round += 1) {
      measured.push({
        driver: await shootDriver(database.url, work, poolSize),
        bare: await rateOf(bare, shotAt(bare)),
        service: await rateOf(service, shotAt(service)),
      })
    }
    const rates = [
      measured.map(({ driver }) => driver),
      measured.map((each) => each.bare.perSecond),
      measured.map((each) => each.service.perSecond),
    ]
    const [driver, bareServer, serviceRate] = rates.map((each) => Math.round(figure(each).median))
    process.stdout.write(
      `${work.padEnd(9)}  driver ${driver}/s  node:http and driver ${bareServer}/s  service ${serviceRate}/s\n` +
        `           of the driver ${share(
          measured.map((each) => each.service.perSecond / each.driver),
          ofDriver,
        )}\n` +
        `           of node:http and driver ${share(
          measured.map((each) => each.service.perSecond / each.bare.perSecond),
          ofServer,
        )}, ` +
        `per second of processor time ${share(measured.map((each) => each.service.perCpuSecond / each.bare.perCpuSecond))}\n`,
    )
  }
} finally {
  await postgres.end()
}

function share(ratios: readonly number[], atLeast?: number): string {
  return `${spread(figure(ratios))}${atLeast === undefined ? '' : `, at least ${atLeast}`}`
}

async function rateOf({ pid }: Server, shot: Shot): Promise<Rate> {
  const before = cpuSeconds(pid!)
  const { perSecond } = await shoot(shot)
  return { perSecond, perCpuSecond: (perSecond * seconds) / (cpuSeconds(pid!) - before) }
}

async function startBareServer(url: string, work: DriverWork, poolSize: number): Promise<Server> {
  return startScript('bare-server.ts', [url, work, String(poolSize)], ([port], { path }) => ({
    base: `http://127.0.0.1:${port}`,
    path,
  }))
}

async function shootDriver(url: string, work: DriverWork, poolSize: number): Promise<number> {
  const file = fileURLToPath(new URL('bare-driver.ts', import.meta.url))
  const printed = await outputOn('server', process.execPath, [file, url, work, String(seconds), String(poolSize)])
  return (JSON.parse(printed) as { perSecond: number }).perSecond
}

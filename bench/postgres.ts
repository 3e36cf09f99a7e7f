// npm run bench:postgres: the service on PostgreSQL against the bare driver with the same statements, in one run.
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { parseConnection } from '../src/store/postgres/connection-settings.ts'
import { newPostgresDatabase } from '../test/engines.ts'
import { startPostgres } from '../test/postgres-server.ts'
import type { DriverWork } from './bare-driver.ts'
import { CONNECTIONS, shoot } from './load.ts'
import { figure, requestOf } from './measure.ts'
import { output } from './processes.ts'
import { ROWS } from './rows.ts'
import { fillDatabase, startService } from './subjects.ts'

/** What each must reach; a page never asked before is shown beside them, since its readers share nothing. */
const AT_LEAST: Record<DriverWork, number | undefined> = { 'list-20': 0.6, 'list-cold': undefined, get: 0.6, create: 0.6 }

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '5' }, seconds: { type: 'string', default: '3' } } })
const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)]

const postgres = await startPostgres()
try {
  await using database = await newPostgresDatabase(postgres.url)
  const key = await fillDatabase(database.url, 1000)
  await using service = await startService({ url: database.url, key })
  for (const [work, atLeast] of Object.entries(AT_LEAST) as [DriverWork, number | undefined][]) {
    const shot = { ...requestOf(ROWS.find(({ id }) => id === work)!, service), seconds, connections: CONNECTIONS }
    await shoot(shot)
    const pairs: { driver: number; service: number }[] = []
    for (let round = 0; round < rounds; round += 1) {
      pairs.push({ driver: await shootDriver(database.url, work), service: (await shoot(shot)).perSecond })
    }
    const driver = figure(pairs.map((pair) => pair.driver))
    const ours = figure(pairs.map((pair) => pair.service))
    const share = figure(pairs.map((pair) => pair.service / pair.driver))
    process.stdout.write(
      `${work.padEnd(9)}  driver ${Math.round(driver.median)}/s  service ${Math.round(ours.median)}/s  ` +
        `share ${share.median.toFixed(2)} (${share.low.toFixed(2)}–${share.high.toFixed(2)})${atLeast ? `, at least ${atLeast}` : ''}\n`,
    )
  }
} finally {
  await postgres.end()
}

async function shootDriver(url: string, work: DriverWork): Promise<number> {
  const file = fileURLToPath(new URL('bare-driver.ts', import.meta.url))
  const parameters = [file, url, work, String(seconds), String(parseConnection(url).poolSize)]
  return (JSON.parse(await output({ command: process.execPath, parameters, core: 'server' })) as { perSecond: number }).perSecond
}

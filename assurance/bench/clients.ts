// npm run bench clients: measures the CPU time and the rate of requests whose clients differ, and of those that ask for the same, in this
// service, its peers and bare node:http, on SQLite and PostgreSQL. --engine sqlite|postgres, --only WORK,… of works.ts, --peers ID,… of
// peers.ts or none, --rounds N, --seconds N, --before FOLDER: another checkout of this service, measured in the same rounds, --workers N:
// this service with as many processes, too, all where the system puts them.
import { cpus, totalmem } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { inColumns } from '../../test/harness/columns.ts'
import { newPostgresDatabase, sqlite, type TestDatabase } from '../../test/harness/databases/engines.ts'
import { median } from '../../test/harness/percentiles.ts'
import { type PostgresServer, startPostgres } from '../../test/harness/databases/postgres-server.ts'
import { cpuSeconds } from '../../test/harness/programs/process-tree.ts'
import { say } from '../../test/harness/say.ts'
import { CONNECTIONS, GENERATOR } from './load.ts'
import { sample, shootWork } from './measure.ts'
import { install, type Peer, POSTGRES_PEERS, SQLITE_PEERS, startPeer } from './peers.ts'
import { PLACEMENT } from './placement.ts'
import { fillDatabase, startCeiling, startService, type Subject } from './subjects.ts'
import { ANIMALS, named, type Work, WORKS } from './works.ts'

const OURS = 'petstore'
const WARM_UP_SECONDS = 2

const { values } = parseArgs({
  options: {
    engine: { type: 'string', default: 'sqlite,postgres' },
    only: { type: 'string' },
    peers: { type: 'string' },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '2' },
    before: { type: 'string' },
    workers: { type: 'string' },
  },
})
const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)]
const works = named(WORKS, values.only)

/** CPU microseconds of a request, which are 0 for a database inside the server, the rate, and the latency in microseconds. */
interface Cost {
  server: number
  database: number
  perSecond: number
  p99: number
}

const PEERS: Record<string, readonly Peer[]> = { sqlite: SQLITE_PEERS, postgres: POSTGRES_PEERS }
for (const engine of values.engine.split(',')) await measureEngine(engine)

async function measureEngine(engine: string): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const chosen = PEERS[engine]!.filter(({ id }) => values.peers === undefined || values.peers.split(',').includes(id))
  const versions = install(chosen)
  const postgres = engine === 'postgres' ? await startPostgres() : undefined
  if (postgres !== undefined) stack.defer(() => postgres.end())
  const ours = await startOurs(OURS, stack, postgres)
  const subjects = [ours]
  if (values.before !== undefined) subjects.push(await startOurs('before', stack, postgres, { folder: values.before }))
  if (values.workers !== undefined)
    subjects.push(await startOurs(`${values.workers} processes`, stack, postgres, { workers: values.workers }))
  for (const peer of chosen.filter((each) => versions.get(each)))
    subjects.push(await startPeer(peer, stack, ANIMALS, postgres?.url))
  if (values.peers === undefined) subjects.push(await startBare(ours, stack))
  const names = subjects.map(({ name }) => name)
  const costs = [[`CPU µs a request, ${engine}`, ...names]]
  const rates = [['requests/s, p99 in ms', ...names]]
  for (const work of works) {
    say(`${engine}: ${work.title}`)
    const measured = await measureWork(work, subjects, postgres)
    costs.push([work.title, ...costCells(measured)])
    rates.push([work.title, ...rateCells(measured)])
  }
  const known = [...versions.values()].filter((version) => version !== undefined).join(', ')
  const missing = chosen.filter((peer) => !versions.get(peer)).map(({ name }) => name)
  process.stdout.write(
    `${inColumns(costs)}\n${inColumns(rates)}\nServer + database; in brackets ${OURS} as a multiple of this. ${ANIMALS} animals. ${describeRun()}. ${known}${missing.length > 0 ? ` Left out: ${missing.join(', ')}.` : ''}\n\n`,
  )
}

async function startOurs(
  name: string,
  stack: AsyncDisposableStack,
  postgres: PostgresServer | undefined,
  { folder, workers }: { folder?: string; workers?: string } = {},
): Promise<Subject> {
  const start = async () => {
    const database: TestDatabase = await (postgres ? newPostgresDatabase(postgres.url) : sqlite.newEmptyDatabase())
    const { url } = stack.use(database)
    const settings = workers === undefined ? [] : ['--workers', workers]
    const program = folder && join(folder, 'bin/petstore')
    const key = await fillDatabase(url, ANIMALS, folder && join(folder, 'src/main.ts'))
    return stack.use(await startService({ url, key }, { program, settings }))
  }
  return { name, servers: { read: await start(), write: await start() } }
}

async function startBare({ servers }: Subject, stack: AsyncDisposableStack): Promise<Subject> {
  const answers = []
  for (const work of works) answers.push(await sample(work, servers[work.writes ? 'write' : 'read']))
  const server = stack.use(await startCeiling(works, answers))
  return { name: 'bare node:http', servers: { read: server, write: server }, without: ['nine-to-one'] }
}

/** Measures the subjects in turns, so that other load on the machine affects all alike. */
async function measureWork(
  work: Work,
  subjects: readonly Subject[],
  postgres: PostgresServer | undefined,
): Promise<Cost[][]> {
  const able = subjects.map((subject) => ({ subject, costs: [] as Cost[] }))
  const measure = async ({ servers, without = [] }: Subject, duration: number) => {
    if (without.includes(work.id)) return undefined
    const server = servers[work.writes ? 'write' : 'read']
    const processes = [server.pid!, ...(postgres ? [postgres.pid] : [])]
    const before = processes.map(cpuSeconds)
    const { requests, perSecond, p99 } = await shootWork(work, server, duration)
    const [own = 0, database = 0] = processes.map((pid, index) => ((cpuSeconds(pid) - before[index]!) / requests) * 1e6)
    return { server: own, database, perSecond, p99 }
  }
  for (const { subject } of able) await measure(subject, WARM_UP_SECONDS)
  for (let round = 0; round < rounds; round += 1)
    for (const { subject, costs } of able) {
      const cost = await measure(subject, seconds)
      if (cost !== undefined) costs.push(cost)
    }
  return able.map(({ costs }) => costs)
}

/** The first subject is this service; the ratio to it is formed within a round. */
function cells(
  measured: readonly Cost[][],
  compared: (cost: Cost) => number,
  cell: (middle: (of: (cost: Cost) => number) => number) => string,
): string[] {
  return measured.map((costs, index) => {
    if (costs.length === 0) return '–'
    const middle = (of: (cost: Cost) => number) => median(costs.map(of))
    if (index === 0) return cell(middle)
    const ratios = costs.map((each, round) => compared(measured[0]![round]!) / compared(each))
    return `${cell(middle)} (${median(ratios).toFixed(2)})`
  })
}

function costCells(measured: readonly Cost[][]): string[] {
  const whole = ({ server, database }: Cost) => server + database
  return cells(measured, whole, (middle) => {
    const database = middle((cost) => cost.database)
    return `${middle(({ server }) => server).toFixed(0)}${database >= 0.5 ? `+${database.toFixed(0)}` : ''}`
  })
}

function rateCells(measured: readonly Cost[][]): string[] {
  const rate = ({ perSecond }: Cost) => perSecond
  return cells(
    measured,
    rate,
    (middle) => `${Math.round(middle(rate)).toLocaleString('en')}, ${(middle(({ p99 }) => p99) / 1000).toFixed(1)}`,
  )
}

function describeRun(): string {
  const gigabytes = Math.round(totalmem() / 2 ** 30)
  const machine = `${cpus().length} cores ${process.arch} (${cpus()[0]?.model ?? 'unknown'}), ${gigabytes} GB, ${process.platform}`
  const how = `${GENERATOR}, ${CONNECTIONS} connections, ${PLACEMENT}; medians of ${rounds} interleaved rounds of ${seconds} s`
  return `${new Date().toISOString().slice(0, 10)}, ${machine}, Node ${process.version}. ${how}`
}

// npm run bench clients: measures the CPU time of a request whose client asks for what others do not, and of shared work beside it, in
// this service and in its peers, on SQLite and PostgreSQL. --engine sqlite|postgres, --only WORK,… of rows.ts, --peers ID,… of peers.ts,
// --rounds N, --seconds N, --before FOLDER: another checkout of this service, measured in the same rounds.
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { inColumns } from '../harness/columns.ts'
import { newPostgresDatabase, sqlite, type TestDatabase } from '../harness/engines.ts'
import { figure } from '../harness/percentiles.ts'
import { type PostgresServer, startPostgres } from '../harness/postgres-server.ts'
import { cpuSeconds } from '../harness/process-tree.ts'
import { say } from '../harness/say.ts'
import { sample, shootRow, type Subject } from './measure.ts'
import { ALL_PEERS, install, type Peer, POSTGRES_PEERS, startPeer } from './peers.ts'
import { CEILING, describeRun, OURS } from './report.ts'
import { ANIMALS, named, type Work, WORKS } from './rows.ts'
import { fillDatabase, startCeiling, startService } from './subjects.ts'

const WARM_UP_SECONDS = 2
const SQLITE_PEERS = new Set(['go', 'fastify', 'hono'])

const { values } = parseArgs({
  options: {
    engine: { type: 'string', default: 'sqlite,postgres' },
    only: { type: 'string' },
    peers: { type: 'string' },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '2' },
    before: { type: 'string' },
  },
})
const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)]
const works = named(WORKS, values.only)

/** CPU microseconds of a request. The database is 0 where it runs inside the server. */
interface Cost {
  server: number
  database: number
}

const PEERS: Record<string, readonly Peer[]> = {
  sqlite: ALL_PEERS.filter(({ id }) => SQLITE_PEERS.has(id)),
  postgres: POSTGRES_PEERS,
}
for (const engine of values.engine.split(',')) await measureEngine(engine)

async function measureEngine(engine: string): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const chosen = PEERS[engine]!.filter(({ id }) => values.peers === undefined || values.peers.split(',').includes(id))
  const versions = install(chosen)
  const postgres = engine === 'postgres' ? await startPostgres() : undefined
  if (postgres !== undefined) stack.defer(() => postgres.end())
  const ours = await startOurs(OURS, stack, postgres)
  const subjects = [ours]
  if (values.before !== undefined) subjects.push(await startOurs('before', stack, postgres, values.before))
  for (const peer of chosen.filter((each) => versions.get(each)))
    subjects.push(await startPeer(peer, stack, ANIMALS, postgres?.url))
  if (values.peers === undefined) subjects.push(await startBare(ours, stack))
  const lines = [[`CPU µs a request, ${engine}`, ...subjects.map(({ name }) => name)]]
  for (const work of works) {
    say(`${engine}: ${work.title}`)
    lines.push([work.title, ...cellsOf(await measureWork(work, subjects, postgres))])
  }
  const { at, machine, node, how } = describeRun({ rounds, seconds, warmUpSeconds: WARM_UP_SECONDS })
  const known = [...versions.values()].filter((version) => version !== undefined).join(', ')
  const missing = chosen.filter((peer) => !versions.get(peer)).map(({ name }) => name)
  process.stdout.write(
    `${inColumns(lines)}\nServer + database; in brackets the whole of ${OURS} as a multiple of this. ${ANIMALS} animals. ${at}, ${machine}, Node ${node}. ${how}. ${known}.${missing.length > 0 ? ` Left out: ${missing.join(', ')}.` : ''}\n\n`,
  )
}

async function startOurs(
  name: string,
  stack: AsyncDisposableStack,
  postgres: PostgresServer | undefined,
  folder?: string,
): Promise<Subject> {
  const start = async () => {
    const database: TestDatabase = await (postgres ? newPostgresDatabase(postgres.url) : sqlite.newEmptyDatabase())
    const { url } = stack.use(database)
    const program = folder === undefined ? undefined : join(folder, 'bin/petstore')
    return stack.use(await startService({ url, key: await fillDatabase(url, ANIMALS) }, { program }))
  }
  return { name, servers: { read: await start(), write: await start() }, supports: () => true }
}

async function startBare({ servers }: Subject, stack: AsyncDisposableStack): Promise<Subject> {
  const answers = []
  for (const work of works) answers.push(await sample(work, servers[work.writes ? 'write' : 'read']))
  const server = stack.use(await startCeiling(works, answers))
  return { name: CEILING, servers: { read: server, write: server }, supports: ({ id }) => id !== 'nine-to-one' }
}

/** Measures the subjects in turns, so that other load on the machine affects all alike. */
async function measureWork(
  work: Work,
  subjects: readonly Subject[],
  postgres: PostgresServer | undefined,
): Promise<Cost[][]> {
  const able = subjects.map((subject) => ({ subject, costs: [] as Cost[] }))
  const measure = async ({ servers, supports }: Subject, duration: number) => {
    if (!supports(work)) return undefined
    const processes = [servers[work.writes ? 'write' : 'read'].pid!, ...(postgres ? [postgres.pid] : [])]
    const before = processes.map(cpuSeconds)
    const { requests } = await shootRow(work, { servers }, duration)
    const [server = 0, database = 0] = processes.map(
      (pid, index) => ((cpuSeconds(pid) - before[index]!) / requests) * 1e6,
    )
    return { server, database }
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
function cellsOf(measured: readonly Cost[][]): string[] {
  const whole = ({ server, database }: Cost) => server + database
  const median = (each: readonly number[]) => figure(each).median
  return measured.map((costs, index) => {
    if (costs.length === 0) return '–'
    const [server, database] = [median(costs.map((cost) => cost.server)), median(costs.map((cost) => cost.database))]
    const cost = `${server.toFixed(0)}${database >= 0.5 ? `+${database.toFixed(0)}` : ''}`
    const ratio = median(costs.map((each, round) => whole(measured[0]![round]!) / whole(each)))
    return index === 0 ? cost : `${cost} (${ratio.toFixed(2)})`
  })
}

// npm run bench requests: measures this service, the ceiling and the peers in one run, and writes the results to the documents. A partial
// run writes nothing: --only ROW,… of rows.ts, --peers ID,… of peers.ts, --quick (short rounds, and only the peers of --peers).
import { mkdirSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { type Figure, figure } from '../harness/percentiles.ts'
import { say } from '../harness/say.ts'
import { drawChart } from './chart.ts'
import { measureMixed, measureRow, type Mixed, type Plan, type Result, sample, type Subject } from './measure.ts'
import { ALL_PEERS, install, startPeer } from './peers.ts'
import { CEILING, describeRun, forTerminal, intoDocument, OURS, type Report } from './report.ts'
import { named, ROWS } from './rows.ts'
import { type Database, newDatabase, startCeiling, startService, timeToListen } from './subjects.ts'

const ANIMALS = 1000
const FULL: Plan = { rounds: 7, seconds: 2, warmUpSeconds: 4 }
const QUICK: Plan = { rounds: 2, seconds: 1, warmUpSeconds: 1 }
const STARTS = 5

const { values } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, only: { type: 'string' }, peers: { type: 'string' } },
})
const plan = values.quick ? QUICK : FULL
const rows = named(ROWS, values.only)
const peers = values.quick && values.peers === undefined ? [] : named(ALL_PEERS, values.peers)

await using stack = new AsyncDisposableStack()
const versions = install(peers)
const leftOut = peers.filter((peer) => !versions.get(peer)).map(({ name }) => name)
if (leftOut.length > 0) say(`Left out, since it can't be installed here: ${leftOut.join(', ')}`)
const [readDatabase, writeDatabase] = await Promise.all([newDatabase(ANIMALS), newDatabase(ANIMALS)])
stack.use(readDatabase)
stack.use(writeDatabase)
const startMs = await measureStart(readDatabase)
const read = stack.use(await startService(readDatabase))
const write = stack.use(await startService(writeDatabase))
const subjects = [
  await startOurCeiling(),
  { name: OURS, servers: { read, write }, supports: () => true },
  ...(await startPeers()),
]

const results: Result[] = []
for (const row of rows) {
  say(
    `${row.title}: ${subjects
      .filter(({ supports }) => supports(row))
      .map(({ name }) => name)
      .join(', ')}`,
  )
  results.push(...(await measureRow(row, subjects, plan)))
}
const mixed = values.only === undefined ? await measureListBesideCreates() : undefined

const report: Report = {
  ...describeRun(plan),
  peers: [...versions.values()].filter((version) => version !== undefined),
  leftOut,
  results,
  mixed,
  startMs,
}
process.stdout.write(forTerminal(report))
if (!values.quick && values.only === undefined && values.peers === undefined) writeDocuments(report)

async function startOurCeiling(): Promise<Subject> {
  const answers = []
  for (const row of ROWS) answers.push(await sample(row, row.writes ? write : read))
  const server = stack.use(await startCeiling(ROWS, answers))
  return { name: CEILING, servers: { read: server, write: server }, supports: () => true }
}

async function startPeers(): Promise<Subject[]> {
  const started: Subject[] = []
  for (const peer of peers.filter((each) => versions.get(each))) {
    const subject = await startPeer(peer, stack, ANIMALS)
    for (const row of rows.filter(subject.supports)) await sample(row, subject.servers[row.writes ? 'write' : 'read'])
    started.push(subject)
  }
  return started
}

function measureListBesideCreates(): Promise<Mixed> {
  say('list while creates run')
  const [list, create] = ['list-20', 'create'].map((id) => ROWS.find((row) => row.id === id)!)
  return measureMixed(list!, create!, write, plan)
}

async function measureStart(database: Database): Promise<Figure> {
  const times = []
  for (let count = 0; count < STARTS; count += 1) times.push(await timeToListen(database))
  return figure(times)
}

function writeDocuments(found: Report): void {
  const docs = new URL('../../docs/', import.meta.url)
  mkdirSync(docs, { recursive: true })
  writeFileSync(new URL('bench.json', docs), `${JSON.stringify(found, null, 2)}\n`)
  writeFileSync(new URL('bench.svg', docs), drawChart(found.results))
  const written = intoDocument(new URL('performance.md', docs), found)
  say(`Written: docs/bench.json, docs/bench.svg${written ? ', and the table in docs/performance.md' : ''}.`)
}

// npm run bench:workers: compares one process with two (--workers 2), each service on its own SQLite file. The load shares the
// machine's cores. --only ROW,…, --workers N, --connections N, --rounds N, --seconds N, --quick: short rounds.
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { inColumns } from '../harness/columns.ts'
import { type Figure, figure, spread } from '../harness/percentiles.ts'
import { cpuSeconds, memoryOf, processTree } from '../harness/process-tree.ts'
import { say } from '../harness/say.ts'
import { type Measured, shoot } from './load.ts'
import { type Plan, requestOf } from './measure.ts'
import { UNPINNED } from './placement.ts'
import { describeRun } from './report.ts'
import { MIXED, named, ROWS } from './rows.ts'
import { newDatabase, type Service, startService } from './subjects.ts'

const ANIMALS = 1000
const SETTLED_MS = 2000
const QUICK: Plan = { rounds: 2, seconds: 1, warmUpSeconds: 1 }

/** The measurements of a service in one round. */
interface Found {
  perSecond: number
  /** All requests per second of CPU time of all processes of the service. */
  perCpuSecond: number
  /** Further figures, by title. */
  further: Record<string, number>
}

interface Work {
  id: string
  title: string
  run: (service: Service, seconds: number) => Promise<Found>
}

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    workers: { type: 'string', default: '2' },
    connections: { type: 'string', default: '64' },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '3' },
    quick: { type: 'boolean', default: false },
  },
})
const plan: Plan = values.quick
  ? QUICK
  : { rounds: Number(values.rounds), seconds: Number(values.seconds), warmUpSeconds: 4 }
const connections = Number(values.connections)

const WORK: readonly Work[] = [
  ...['list-20', 'get', 'list-cold'].map((id) => ({
    id,
    title: row(id).title,
    run: (service: Service, seconds: number) => shootFor(service, [id], seconds),
  })),
  { id: 'create', title: row('create').title, run: countCommits },
  { id: 'mixed', title: MIXED.title, run: listBesideCreates },
]

await using stack = new AsyncDisposableStack()
const one = await startWith('1')
const two = await startWith(values.workers)
const worker = processTree(two.pid!).at(-1)!
await wait(SETTLED_MS)
const idle = memoryOf(worker)

const n = values.workers
const lines = [
  [
    'Work',
    'one process',
    `${n} processes`,
    `${n} : one`,
    'CPU µs a request, one',
    `of ${n}`,
    `requests per CPU second, ${n} : one`,
  ],
]
for (const work of named(WORK, values.only)) {
  say(work.title)
  lines.push(...linesOf(work, await measure(work)))
}
const loaded = memoryOf(worker)
const memory = (at: typeof idle) => `${at.pss.toFixed(0)} MB (${at.private.toFixed(0)} MB shared with none)`
const { at, machine, node, how } = describeRun(plan, { connections, placement: UNPINNED })
process.stdout.write(
  `${inColumns(lines)}\nA worker's memory, PSS: idle ${memory(idle)}, after the load ${memory(loaded)}.\n${at}, ${machine}, Node ${node}. ${how}.\n`,
)

async function startWith(workers: string): Promise<Service> {
  const database = stack.use(await newDatabase(ANIMALS))
  return stack.use(await startService(database, { settings: ['--workers', workers, '--admin-port', '0'], core: 'any' }))
}

/** Measures both services in each round, so that other load on the machine affects both alike. */
async function measure({ run }: Work): Promise<{ one: Found; two: Found }[]> {
  for (const service of [one, two]) await run(service, plan.warmUpSeconds)
  const rounds = []
  for (let round = 0; round < plan.rounds; round += 1)
    rounds.push({ one: await run(one, plan.seconds), two: await run(two, plan.seconds) })
  return rounds
}

function linesOf({ title }: Work, rounds: readonly { one: Found; two: Found }[]): string[][] {
  const compare = (of: (found: Found) => number) => ({
    one: figure(rounds.map((round) => of(round.one))),
    two: figure(rounds.map((round) => of(round.two))),
    ratio: spread(figure(rounds.map((round) => of(round.two) / of(round.one)))),
  })
  const rate = compare(({ perSecond }) => perSecond)
  const cpu = compare(({ perCpuSecond }) => perCpuSecond)
  const perSecond = ({ median }: Figure) => `${Math.round(median).toLocaleString('en')}/s`
  const microseconds = ({ median }: Figure) => (1e6 / median).toFixed(0)
  return [
    [
      title,
      perSecond(rate.one),
      perSecond(rate.two),
      rate.ratio,
      microseconds(cpu.one),
      microseconds(cpu.two),
      cpu.ratio,
    ],
    ...Object.keys(rounds[0]!.one.further).map((name) => {
      const further = compare((found) => found.further[name]!)
      const digits = further.one.median < 100 ? 2 : 0
      return [`  ${name}`, spread(further.one, digits), spread(further.two, digits), further.ratio, '', '', '']
    }),
  ]
}

/** Runs these rows at once, on new connections, which the kernel assigns to processes; returns the rate of the first row. */
async function shootFor(
  service: Service,
  ids: readonly string[],
  seconds: number,
): Promise<Found & { measured: Measured[] }> {
  const before = cpuSeconds(service.pid!)
  const measured = await Promise.all(
    ids.map((id) => shoot({ ...requestOf(row(id), service), seconds, connections, core: 'any' })),
  )
  const spent = cpuSeconds(service.pid!) - before
  const refused = measured.reduce((sum, each) => sum + each.refused, 0)
  if (refused > 0) throw new Error(`${refused} requests of ${ids.join(', ')} were refused`)
  const all = measured.reduce((sum, { perSecond }) => sum + perSecond, 0)
  return { measured, perSecond: measured[0]!.perSecond, perCpuSecond: (all * seconds) / spent, further: {} }
}

async function countCommits(service: Service, seconds: number): Promise<Found> {
  const before = await commitsOf(service)
  const found = await shootFor(service, ['create'], seconds)
  const after = await commitsOf(service)
  return {
    ...found,
    further: { 'writes per commit': (after.writes - before.writes) / (after.commits - before.commits) },
  }
}

async function listBesideCreates(service: Service, seconds: number): Promise<Found> {
  const quiet = await shootFor(service, ['list-20'], seconds)
  const busy = await shootFor(service, ['list-20', 'create'], seconds)
  return {
    ...busy,
    further: {
      'of its quiet rate': busy.perSecond / quiet.perSecond,
      'creates beside it, per second': busy.measured[1]!.perSecond,
    },
  }
}

async function commitsOf({ admin }: Service): Promise<{ commits: number; writes: number }> {
  const page = await (await fetch(`${admin}/metrics`)).text()
  const total = (name: string) => Number(new RegExp(`^petstore_${name}_total (\\d+)`, 'm').exec(page)![1])
  return { commits: total('commits'), writes: total('committed_writes') }
}

function row(id: string) {
  return ROWS.find((each) => each.id === id)!
}

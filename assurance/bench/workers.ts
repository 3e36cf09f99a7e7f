// npm run bench workers: compares one process with two (--workers 2), and both with two services of one process that share nothing,
// not even a file, and half of the connections each: no sharing can be cheaper on this machine. Every service has its own SQLite
// file. The load shares the machine's cores. --only ROW,…, --workers N, --connections N, --rounds N, --seconds N, --quick: short rounds.
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { inColumns } from '../harness/columns.ts'
import { type Figure, figure, spread } from '../harness/percentiles.ts'
import { cpuSeconds, memoryOf, processTree } from '../harness/process-tree.ts'
import { say } from '../harness/say.ts'
import { shoot } from './load.ts'
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
  run: (services: readonly Service[], seconds: number) => Promise<Found>
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
    run: (services: readonly Service[], seconds: number) => shootFor(services, [id], seconds),
  })),
  { id: 'create', title: row('create').title, run: countCommits },
  { id: 'mixed', title: MIXED.title, run: listBesideCreates },
]

await using stack = new AsyncDisposableStack()
const SUBJECTS = {
  one: [await startWith('1')],
  two: [await startWith(values.workers)],
  apart: await Promise.all(Array.from({ length: Number(values.workers) }, () => startWith('1'))),
}
type Round = Record<keyof typeof SUBJECTS, Found>
const worker = processTree(SUBJECTS.two[0]!.pid!).at(-1)!
await wait(SETTLED_MS)
const idle = memoryOf(worker)

const n = values.workers
const lines = [
  [
    'Work',
    'one process',
    `${n} processes`,
    `${n} : one`,
    `${n} apart : one`,
    'CPU µs a request, one',
    `of ${n}`,
    `requests per CPU second, ${n} : one`,
    `${n} apart : one`,
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

/** Measures all subjects in each round, so that other load on the machine affects them alike. */
async function measure({ run }: Work): Promise<Round[]> {
  for (const services of Object.values(SUBJECTS)) await run(services, plan.warmUpSeconds)
  const rounds: Round[] = []
  const { one, two, apart } = SUBJECTS
  for (let round = 0; round < plan.rounds; round += 1)
    rounds.push({
      one: await run(one, plan.seconds),
      two: await run(two, plan.seconds),
      apart: await run(apart, plan.seconds),
    })
  return rounds
}

function linesOf({ title }: Work, rounds: readonly Round[]): string[][] {
  const compare = (of: (found: Found) => number) => ({
    one: figure(rounds.map((round) => of(round.one))),
    two: figure(rounds.map((round) => of(round.two))),
    ratio: spread(figure(rounds.map((round) => of(round.two) / of(round.one)))),
    apart: spread(figure(rounds.map((round) => of(round.apart) / of(round.one)))),
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
      rate.apart,
      microseconds(cpu.one),
      microseconds(cpu.two),
      cpu.ratio,
      cpu.apart,
    ],
    ...Object.keys(rounds[0]!.one.further).map((name) => {
      const further = compare((found) => found.further[name]!)
      const digits = further.one.median < 100 ? 2 : 0
      return [
        `  ${name}`,
        spread(further.one, digits),
        spread(further.two, digits),
        further.ratio,
        further.apart,
        '',
        '',
        '',
        '',
      ]
    }),
  ]
}

/**
 * Runs these rows at once, on new connections, which the kernel assigns to the processes of a service. Returns the rate of the
 * first row.
 */
async function shootFor(
  services: readonly Service[],
  ids: readonly string[],
  seconds: number,
): Promise<Found & { rates: number[] }> {
  const spentSoFar = () => sumOf(services.map(({ pid }) => cpuSeconds(pid!)))
  const before = spentSoFar()
  const shot = { seconds, connections: connections / services.length, core: 'any' } as const
  const measured = await Promise.all(
    ids.map((id) => Promise.all(services.map((service) => shoot({ ...requestOf(row(id), service), ...shot })))),
  )
  const spent = spentSoFar() - before
  const refused = sumOf(measured.flat().map((each) => each.refused))
  if (refused > 0) throw new Error(`${refused} requests of ${ids.join(', ')} were refused`)
  const rates = measured.map((ofRow) => sumOf(ofRow.map(({ perSecond }) => perSecond)))
  return { rates, perSecond: rates[0]!, perCpuSecond: (sumOf(rates) * seconds) / spent, further: {} }
}

async function countCommits(services: readonly Service[], seconds: number): Promise<Found> {
  const before = await commitsOf(services)
  const found = await shootFor(services, ['create'], seconds)
  const after = await commitsOf(services)
  return {
    ...found,
    further: { 'writes per commit': (after.writes - before.writes) / (after.commits - before.commits) },
  }
}

async function listBesideCreates(services: readonly Service[], seconds: number): Promise<Found> {
  const quiet = await shootFor(services, ['list-20'], seconds)
  const busy = await shootFor(services, ['list-20', 'create'], seconds)
  return {
    ...busy,
    further: {
      'of its quiet rate': busy.perSecond / quiet.perSecond,
      'creates beside it, per second': busy.rates[1]!,
    },
  }
}

async function commitsOf(services: readonly Service[]): Promise<{ commits: number; writes: number }> {
  const pages = await Promise.all(services.map(async ({ admin }) => (await fetch(`${admin}/metrics`)).text()))
  const total = (name: string) =>
    sumOf(pages.map((page) => Number(new RegExp(`^petstore_${name}_total (\\d+)`, 'm').exec(page)![1])))
  return { commits: total('commits'), writes: total('committed_writes') }
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0)
}

function row(id: string) {
  return ROWS.find((each) => each.id === id)!
}

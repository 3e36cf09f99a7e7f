// npm run bench executable: the executable of this platform (`npm run build:executables`) beside the checkout: CPU time of a request,
// time until it listens, and memory. A ratio above 1 means that the executable is better. --rounds N, --seconds N.
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { inColumns } from '../harness/columns.ts'
import { figure, spread } from '../harness/percentiles.ts'
import { cpuSeconds, memoryOf } from '../harness/process-tree.ts'
import { shoot } from './load.ts'
import { requestOf } from './measure.ts'
import { ROWS } from './rows.ts'
import { newDatabase, type Service, startService } from './subjects.ts'

const FOLDER = fileURLToPath(new URL('../../executables/', import.meta.url))
const file =
  existsSync(FOLDER) && readdirSync(FOLDER).find((each) => each.endsWith(`-${process.platform}-${process.arch}`))
if (!file) throw new Error(`${FOLDER} has no executable for this machine. Run this first: npm run build:executables`)

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '8' }, seconds: { type: 'string', default: '3' } },
})
const PROGRAMS = { checkout: undefined, executable: join(FOLDER, file) }
type Name = keyof typeof PROGRAMS
type Found = Record<Name, number>

await using stack = new AsyncDisposableStack()
const start = async (name: Name) =>
  stack.use(await startService(stack.use(await newDatabase(1000)), { core: 'any', program: PROGRAMS[name] }))
const services = { checkout: await start('checkout'), executable: await start('executable') }
const lines = [['', 'checkout', 'executable', 'checkout : executable']]
for (const id of ['list-20', 'get', 'create']) {
  await rounds((name) => cpuOf(services[name], id), 1)
  add(`${id}, CPU µs`, await rounds((name) => cpuOf(services[name], id)), 1)
}
add('until it listens, ms', await rounds(timeToListen), 0)
add('memory after the load, MB', await rounds(async (name) => memoryOf(services[name].pid!).pss, 1), 0)
process.stdout.write(inColumns(lines))

/** Measures both in each round, so that other load on the machine affects them alike. */
async function rounds(measure: (name: Name) => Promise<number>, count = Number(values.rounds)): Promise<Found[]> {
  const found: Found[] = []
  for (let round = 0; round < count; round += 1)
    found.push({ checkout: await measure('checkout'), executable: await measure('executable') })
  return found
}

function add(title: string, found: readonly Found[], digits: number): void {
  const of = (name: Name) => spread(figure(found.map((each) => each[name])), digits)
  const ratio = spread(figure(found.map(({ checkout, executable }) => checkout / executable)))
  lines.push([title, of('checkout'), of('executable'), ratio])
}

async function cpuOf(service: Service, id: string): Promise<number> {
  const seconds = Number(values.seconds)
  const before = cpuSeconds(service.pid!)
  const row = ROWS.find((each) => each.id === id)!
  const { perSecond } = await shoot({ ...requestOf(row, service), seconds, connections: 32, core: 'any' })
  return ((cpuSeconds(service.pid!) - before) * 1e6) / (perSecond * seconds)
}

async function timeToListen(name: Name): Promise<number> {
  await using database = await newDatabase(1)
  const started = performance.now()
  await using _service = await startService(database, { core: 'any', program: PROGRAMS[name] })
  return performance.now() - started
}

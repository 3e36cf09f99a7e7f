// npm run bench soak: measures the memory of each process under load, and whether it grows. Runs for ten minutes
// (--minutes N) with a million animals (--animals N, at least 20,000) and one process (--workers N).
import { parseArgs } from 'node:util'
import { median } from '../../test/harness/percentiles.ts'
import { processTree, residentMegabytes } from '../../test/harness/programs/process-tree.ts'
import { shootWork } from './measure.ts'
import { newDatabase, startService } from './subjects.ts'
import { WORKS } from './works.ts'

const LIMIT_MB = 150
const SHOT_SECONDS = 5
/** Memory that rises by more than this ratio, from the second quarter of the run to the last, counts as growing. */
const GROWTH_LIMIT = 1.05

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    animals: { type: 'string', default: '1000000' },
    workers: { type: 'string', default: '1' },
  },
})
const minutes = Number(values.minutes)
const say = (text: string) => process.stdout.write(`${text}\n`)

say(`Adding ${values.animals} animals`)
await using database = await newDatabase(Number(values.animals))
await using service = await startService(database, { settings: ['--workers', values.workers] })
const processes = processTree(service.pid!)
const samples: { minute: number; megabytes: number[] }[] = []
const started = performance.now()
const minute = () => (performance.now() - started) / 60_000
const sampling = setInterval(
  () => samples.push({ minute: minute(), megabytes: processes.map(residentMegabytes) }),
  1000,
)

// Runs every work in turn; most of them read, as most requests to a store do.
while (minute() < minutes) {
  for (const work of WORKS) {
    await shootWork(work, service, SHOT_SECONDS)
    const now = processes.map((pid) => residentMegabytes(pid).toFixed(0).padStart(4)).join(' +')
    say(`${minute().toFixed(1).padStart(5)} min  ${now} MB  after ${work.title}`)
  }
}
clearInterval(sampling)

const verdicts = processes.map((_, index) =>
  judge(
    index === 0 ? 'Primary' : `Worker ${index}`,
    samples.map(({ megabytes, ...sample }) => ({ ...sample, megabytes: megabytes[index]! })),
  ),
)
process.exitCode = verdicts.every(Boolean) ? 0 : 1

/** Returns whether the memory of a process stays low and does not grow. */
function judge(name: string, own: { minute: number; megabytes: number }[]): boolean {
  const peak = Math.max(...own.map(({ megabytes }) => megabytes))
  const between = (from: number, to: number) =>
    median(
      own
        .filter((sample) => sample.minute >= from * minute() && sample.minute < to * minute())
        .map(({ megabytes }) => megabytes),
    )
  const [early, late] = [between(0.25, 0.5), between(0.75, 1.01)]
  const grows = late > early * GROWTH_LIMIT
  say(
    `${name}: highest ${peak.toFixed(0)} MB (under ${LIMIT_MB} asked). Median of the second quarter ${early.toFixed(0)} MB, of the last ${late.toFixed(0)} MB: ${grows ? 'it grows' : 'no growth'}.`,
  )
  return peak < LIMIT_MB && !grows
}

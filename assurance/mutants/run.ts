// npm run mutants: changes the code in small ways, one at a time, and counts how many of the changes a test notices.
// With words, only those folders: npm run mutants -- contract accounts. MUTANT_MINUTES bounds each folder, and
// MUTANT_SECONDS the tests of one change, the likely and the fast files first. With MUTANT_SAMPLE=20 only what lies in 20
// windows of a folder's lines is changed; MUTANT_SEED chooses other windows.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startSharedPostgres } from '../harness/engines.ts'
import { fastestFolder } from '../harness/fastest-folder.ts'
import { below, seeded } from '../harness/random.ts'
import { FOLDERS, type MutatedFolder } from './folders.ts'
import { report, type TestedMutant } from './report.ts'
import { readIfWhole, type TestFiles } from './test-runner.ts'

const MINUTES = setting('MUTANT_MINUTES', 60)
const SECONDS = setting('MUTANT_SECONDS', 30)
const SAMPLE = setting('MUTANT_SAMPLE', 0)
const SEED = setting('MUTANT_SEED', 1)
const WINDOW = 12
/** The tests on the other engine are those with its name in theirs. */
const OTHER_ENGINE = { SQLite: { skip: 'on PostgreSQL' }, PostgreSQL: { skip: 'on SQLite' }, both: {} }
const here = fileURLToPath(new URL('.', import.meta.url))
const root = join(here, '../..')
const stryker = join(here, 'node_modules/@stryker-mutator/core/bin/stryker.js')

const asked = process.argv.slice(2)
const unknown = asked.filter((name) => !FOLDERS.some((folder) => folder.name === name))
if (unknown.length > 0)
  throw new Error(`no such folder: ${unknown.join(', ')}; there are ${FOLDERS.map(({ name }) => name).join(', ')}`)

if (!existsSync(stryker)) {
  const { status } = spawnSync('npm', ['install', '--no-package-lock', '--no-audit', '--no-fund', '--ignore-scripts'], {
    cwd: here,
    stdio: 'inherit',
  })
  if (status !== 0) throw new Error('npm could not install Stryker')
}
// Stryker is in a process group of its own, so that its end is the end of the tests it runs; a Ctrl-C does not reach it.
let group: number | undefined
const endStryker = () => {
  try {
    if (group !== undefined) process.kill(-group, 'SIGKILL')
  } catch {
    // It has ended.
  }
}
const work = mkdtempSync(join(fastestFolder(), 'petstore-mutants-'))
// A test's own PostgreSQL server, which does not run as root, has its files in there.
chmodSync(work, 0o711)
process.on('exit', () => {
  endStryker()
  rmSync(work, { recursive: true, force: true, maxRetries: 5 })
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(1))

const postgres = await startSharedPostgres()
for (const folder of FOLDERS.filter(({ name }) => asked.length === 0 || asked.includes(name))) {
  try {
    process.stdout.write(report(folder.name, ...(await testMutants(folder))))
  } catch (error) {
    // The next folder may be tested all the same.
    process.stdout.write(`\n${folder.name}: ${(error as Error).message}\n`)
    process.exitCode = 1
  }
}
await postgres.end()

/** Reads a number from the environment. */
function setting(name: string, otherwise: number): number {
  const given = process.env[name]
  if (given === undefined) return otherwise
  if (Number(given) > 0 && Number(given) < 10_000) return Number(given)
  throw new Error(`${name} must be a number above 0 and below 10000, got ${given}`)
}

/** The mutants that were tested in the time there is, and how many there are. */
async function testMutants(folder: MutatedFolder): Promise<[tested: TestedMutant[], total: number]> {
  const events = join(work, folder.name)
  mkdirSync(events)
  writeFileSync(join(work, 'stryker.json'), JSON.stringify(configuration(folder, events)))
  const child = spawn(process.execPath, [stryker, 'run', join(work, 'stryker.json')], {
    cwd: root,
    env: { ...process.env, NODE_COMPILE_CACHE: join(work, 'compiled'), TMPDIR: work },
    stdio: ['ignore', 'inherit', 'inherit'],
    detached: true,
  })
  group = child.pid
  const late = setTimeout(endStryker, MINUTES * 60_000)
  const [code] = (await once(child, 'exit')) as [number | null]
  clearTimeout(late)
  // What the tests have left running.
  endStryker()
  group = undefined
  if (code !== null && code !== 0) throw new Error('no score: Stryker has failed; its reason is above')
  const read = (event: string) =>
    readdirSync(events)
      .filter((file) => file.endsWith(`${event}.json`))
      // The last one may be half-written when time ran out.
      .flatMap((file) => readIfWhole(join(events, file)))
  const tested = read('onMutantTested') as TestedMutant[]
  const plans = (read('onMutationTestingPlanReady') as { mutantPlans: unknown[] }[]).flatMap(
    ({ mutantPlans }) => mutantPlans,
  )
  if (plans.length === 0) throw new Error('no score: the time ran out before any change, or there is nothing to change')
  return [tested, plans.length]
}

function configuration({ mutate, tests, engine }: MutatedFolder, events: string): object {
  return {
    mutate: SAMPLE > 0 ? windows(mutate) : [...mutate, '!**/*.test.ts'],
    // Texts for people: nearly all of the strings, and a change of one is rarely a fault.
    mutator: { excludedMutations: ['StringLiteral'] },
    testRunner: 'node-test',
    plugins: [join(here, 'test-runner.ts')],
    nodeTest: {
      files: tests,
      milliseconds: SECONDS * 1000,
      ...OTHER_ENGINE[engine ?? 'SQLite'],
    } satisfies TestFiles,
    coverageAnalysis: 'perTest',
    // More than the cores: a test whose service does not answer waits for its time limit.
    concurrency: 3 * availableParallelism(),
    // The plugin has a limit for each test file, which ends a test that hangs before this does.
    timeoutMS: 60_000,
    timeoutFactor: 5,
    dryRunTimeoutMinutes: MINUTES,
    reporters: ['event-recorder'],
    // What is under nodeTest is unknown to Stryker, and known to its plugin.
    warnings: { unknownOptions: false },
    eventReporter: { baseDir: events },
    tempDirName: join(work, 'sandbox'),
    ignorePatterns: ['assurance/mutants', 'assurance/bench', 'docs/screenshots'],
    // Stryker would rewrite it for a compiler, by an interface that TypeScript 7 no longer has.
    tsconfigFile: 'none',
    allowConsoleColors: false,
  }
}

/** Chooses windows of the files' lines, each line as likely as any other; in Stryker's form, file:first-last. */
function windows(patterns: readonly string[]): string[] {
  const lines = globSync(patterns, { cwd: root })
    .filter((file) => !file.endsWith('.test.ts'))
    .toSorted()
    .flatMap((file) =>
      readFileSync(join(root, file), 'utf8')
        .split('\n')
        .map((_, index) => ({ file, first: index + 1 })),
    )
  const random = seeded(SEED)
  return Array.from({ length: SAMPLE }, () => lines[below(lines.length, random)]!).map(
    ({ file, first }) => `${file}:${first}-${first + WINDOW - 1}`,
  )
}

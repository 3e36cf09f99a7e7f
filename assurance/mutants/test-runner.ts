// Stryker's way to this project's tests: it runs only the tests that reach a mutant, a process per file, the likely and the
// fast ones first.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { signalTree } from '../harness/process-tree.ts'
import { type Hits, OWN_RECORD, type ProcessRecord, type RecordOrder } from './record.ts'

/** The file with the `Times`, in the folder of the instrumented code, which the processes of a run share. */
const TIMES = 'mutant-times.json'

/** How long all took unchanged, in milliseconds. */
interface Times {
  tests: Record<string, number>
  /** What a file does beside its tests, such as the start of a service for them. */
  beside: Record<string, number>
}

/** Between the file and the name in a test's id. */
const THEN = ' > '

export interface TestFiles {
  files: readonly string[]
  /** A pattern for the names of tests to leave out. */
  skip?: string
  /** The time for the tests of a mutant and what their files do beside, as they take it unchanged; the first file always runs. */
  milliseconds: number
}

// The part of Stryker's interface for test runners that is needed here: its packages are not installed with the project's.
interface DryRun {
  status: 'complete' | 'error'
  errorMessage?: string
  tests?: { id: string; name: string; timeSpentMs: number; status: typeof SUCCESS }[]
  mutantCoverage?: { static: Hits; perTest: Record<string, Hits> }
}

interface Mutant {
  activeMutant: { id: string; fileName: string }
  testFilter?: string[]
  hitLimit?: number
}

interface Verdict {
  status: 'killed' | 'survived' | 'timeout'
  killedBy?: string[]
  failureMessage?: string
  nrOfTests?: number
}

const SUCCESS = 0

class NodeTestRunner {
  static readonly inject = ['options']
  readonly #tests: TestFiles
  /** By source file: the test file that noticed its last mutant in a short time, and is likely to notice its next. */
  readonly #lastKiller = new Map<string, string>()

  constructor(options: { nodeTest: TestFiles }) {
    this.#tests = options.nodeTest
  }

  capabilities() {
    return { reloadEnvironment: true }
  }

  /** Runs all tests unchanged. */
  async dryRun(): Promise<DryRun> {
    const skip = this.#tests.skip === undefined ? [] : [`--test-skip-pattern=${this.#tests.skip}`]
    const runs: ({ file: string } & FileRun)[] = []
    const files = globSync(this.#tests.files).values()
    const runRest = async () => {
      for (const file of files) runs.push({ file, ...(await runFile(file, skip, {})) })
    }
    await Promise.all(Array.from({ length: availableParallelism() }, runRest))
    const failed = runs.find(({ code }) => code !== 0)
    if (failed) return { status: 'error', errorMessage: `${failed.file} fails with no change\n${failed.output}` }
    const times: Times = { tests: {}, beside: {} }
    const tests = []
    const perTest: Record<string, Hits> = {}
    for (const { file, own, others, milliseconds: all } of runs.toSorted((a, b) => a.milliseconds - b.milliseconds)) {
      const inTests = own.tests.reduce((total, { milliseconds }) => total + milliseconds, 0)
      times.beside[file] = Math.max(0, all - inTests)
      // What another process or thread of a file reached, any of its tests may have reached.
      const shared = [own.shared, ...others.map((other) => other.shared)]
      for (const { name, milliseconds } of own.tests) {
        const id = `${file}${THEN}${name}`
        times.tests[id] = milliseconds
        tests.push({ id, name: id, timeSpentMs: milliseconds, status: SUCCESS } as const)
        perTest[id] = sum([...shared, own.byTest[name] ?? {}])
      }
    }
    writeFileSync(TIMES, JSON.stringify(times))
    return { status: 'complete', tests, mutantCoverage: { static: {}, perTest } }
  }

  async mutantRun({ activeMutant, testFilter = [], hitLimit }: Mutant): Promise<Verdict> {
    const { beside, tests } = JSON.parse(readFileSync(TIMES, 'utf8')) as Times
    const order = { activeMutant: activeMutant.id, ...(hitLimit && { hitLimit: String(hitLimit) }) }
    let left = this.#tests.milliseconds
    let nrOfTests = 0
    const byFile = [...Map.groupBy(testFilter, (id) => id.slice(0, id.indexOf(THEN)))]
    const isLikely = (file: string) =>
      file === this.#lastKiller.get(activeMutant.fileName) ||
      file.includes(`/${basename(activeMutant.fileName, '.ts')}.`)
    for (const [file, reaching] of byFile.toSorted(([a], [b]) => Number(isLikely(b)) - Number(isLikely(a)))) {
      left -= beside[file]!
      const ids = reaching.filter((id) => (left -= tests[id]!) > 0 || nrOfTests === 0)
      if (ids.length === 0) break
      nrOfTests += ids.length
      const names = ids.map((id) => id.slice(file.length + THEN.length))
      // For each file, since Stryker's limit, for all of them together, would wait long for a test that hangs in the first.
      const unchanged = ids.reduce((total, id) => total + tests[id]!, beside[file]!)
      const deadline = AbortSignal.timeout(Math.ceil(6000 + 6 * unchanged))
      const only = names.map((name) => `--test-name-pattern=${exactly(name)}`)
      const { code, own } = await runFile(file, only, order, deadline)
      if (deadline.aborted || (hitLimit && (own.hitCount ?? 0) > hitLimit)) return { status: 'timeout' }
      if (code === 0) {
        const silent = names.find((name) => !own.tests.some((test) => test.name === name))
        if (silent !== undefined) throw new Error(`${file}: "${silent}" did not run`)
        continue
      }
      if (unchanged < this.#tests.milliseconds / 5) this.#lastKiller.set(activeMutant.fileName, file)
      const failed = own.tests.find(({ error }) => error !== undefined)
      return {
        status: 'killed',
        killedBy: failed ? [`${file}${THEN}${failed.name}`] : ids,
        failureMessage: failed?.error ?? `the process of ${file} ended with ${code}`,
        nrOfTests: own.tests.length,
      }
    }
    return { status: 'survived', nrOfTests }
  }
}

export const strykerPlugins = [{ kind: 'TestRunner', name: 'node-test', injectableClass: NodeTestRunner }]

/** A pattern for the test with this full name; Node.js puts a space between its parts. */
function exactly(name: string): string {
  return `/^${name
    .trim()
    .split(' > ')
    .map((part) => RegExp.escape(part))
    .join('(?: > | )')}$/`
}

function sum(all: readonly Hits[]): Hits {
  const total: Hits = {}
  for (const hits of all)
    for (const [mutant, count] of Object.entries(hits)) total[mutant] = (total[mutant] ?? 0) + count
  return total
}

const NOTHING: ProcessRecord = { shared: {}, byTest: {}, tests: [] }

interface FileRun {
  code: number | null
  milliseconds: number
  own: ProcessRecord
  others: ProcessRecord[]
  output: string
}

async function runFile(
  file: string,
  options: string[],
  order: Omit<RecordOrder, 'folder'>,
  signal?: AbortSignal,
): Promise<FileRun> {
  const folder = mkdtempSync(join(tmpdir(), 'mutant-run-'))
  const recorder = new URL('record.ts', import.meta.url)
  recorder.search = new URLSearchParams({ ...order, folder }).toString()
  const start = performance.now()
  const child = spawn(process.execPath, ['--test-reporter=spec', ...options, file], {
    env: { ...process.env, NODE_OPTIONS: `--import=${recorder.href}` },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  // With the processes that the tests have started, which would slow down the tests of other mutants.
  signal?.addEventListener('abort', () => signalTree(child.pid!, 'SIGKILL'))
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
  const [code] = (await once(child, 'exit')) as [number | null]
  const recordsOf = (names: string[]) => names.flatMap((name) => readIfWhole(join(folder, name))) as ProcessRecord[]
  const [own = NOTHING] = recordsOf([OWN_RECORD])
  const others = recordsOf(readdirSync(folder).filter((name) => name !== OWN_RECORD))
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  return {
    code,
    milliseconds: performance.now() - start,
    own,
    others,
    output,
  }
}

/** Reads JSON that a killed process may have left half-written: nothing then, else the one value. */
export function readIfWhole(path: string): unknown[] {
  try {
    return [JSON.parse(readFileSync(path, 'utf8'))]
  } catch {
    return []
  }
}

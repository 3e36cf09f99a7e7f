// Loaded into each process of a mutation run: which mutants are reached, by which tests, and which fail. The query of its address
// (NODE_OPTIONS=--import=…/record.ts?folder=…) says what to do, so that one variable is all that a process has to pass on.
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach } from 'node:test'
import { isMainThread, threadId } from 'node:worker_threads'

/** What a process is told: the folder for its record and, in the run of a mutant, its id and how often it may be reached. */
export interface RecordOrder {
  folder: string
  activeMutant?: string
  hitLimit?: string
}

/** The name of the record of a test file's own process; the processes and threads that it starts write others. */
export const OWN_RECORD = 'own.json'

const RECORD_EVERY_MS = 200

/** The clock, which a test may mock. */
const milliseconds = performance.now.bind(performance)

export type Hits = Record<string, number>

export interface ProcessRecord {
  /** By mutant: what no single test reached, such as the loading of modules and the start of a service for many tests. */
  shared: Hits
  byTest: Record<string, Hits>
  tests: { name: string; milliseconds: number; error?: string }[]
  hitCount?: number
}

/** Instrumented code reads and writes this, by Stryker's names. */
interface Instrumented {
  activeMutant?: string
  currentTestId?: string | undefined
  mutantCoverage?: { static: Hits; perTest: Record<string, Hits> }
  hitLimit?: number
  hitCount?: number
}

const order = Object.fromEntries(new URL(import.meta.url).searchParams)
if (order['folder'] !== undefined) record(order as object as RecordOrder)

function record({ folder, activeMutant, hitLimit }: RecordOrder): void {
  const instrumented: Instrumented = {
    ...(activeMutant !== undefined && { activeMutant }),
    ...(hitLimit !== undefined && { hitLimit: Number(hitLimit), hitCount: 0 }),
  }
  Object.assign(globalThis, { __stryker__: instrumented })
  const tests: ProcessRecord['tests'] = []
  const isTestFile = isMainThread && process.argv[1]?.endsWith('.test.ts')
  if (isTestFile) recordTests(instrumented, tests)
  const write = () => {
    const { static: shared = {}, perTest: byTest = {} } = instrumented.mutantCoverage ?? {}
    const { hitCount } = instrumented
    const written: ProcessRecord = { shared, byTest, tests, ...(hitCount !== undefined && { hitCount }) }
    // A process may outlive its test file, and the folder.
    if (!existsSync(folder)) return
    writeFileSync(join(folder, isTestFile ? OWN_RECORD : `${process.pid}-${threadId}.json`), JSON.stringify(written))
  }
  process.on('exit', write)
  // A process that a test kills has no exit.
  if (!isTestFile && activeMutant === undefined) setInterval(write, RECORD_EVERY_MS).unref()
}

function recordTests(instrumented: Instrumented, tests: ProcessRecord['tests']): void {
  const started = new Map<string, number>()
  let failed = false
  beforeEach((test) => {
    const name = test.fullName
    started.set(name, milliseconds())
    // Of two tests at once, neither is known to be the one that reaches a mutant.
    instrumented.currentTestId = started.size === 1 ? name : undefined
    // Only whether a test fails is asked: the rest ends at once, and its hooks still clean up.
    if (failed) throw new Error('not run: a test has failed')
  })
  afterEach((test) => {
    const name = test.fullName
    const took = milliseconds() - started.get(name)!
    started.delete(name)
    instrumented.currentTestId = undefined
    if (failed) return
    failed = !test.passed
    tests.push({
      name,
      milliseconds: took,
      ...(failed && { error: ('error' in test && test.error?.message) || 'no reason given' }),
    })
  })
}

// Loaded into each process of a mutation run (node --import): which mutants are reached, by which tests, and which fail.
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach } from 'node:test'
import { isMainThread, threadId } from 'node:worker_threads'

/** The variables that the runner sets: the folder for the records, and how often a mutant may be reached. */
export const RECORDS = 'MUTANT_RECORDS'
export const HIT_LIMIT = 'MUTANT_HIT_LIMIT'
/** The name of the record of a test file's own process; the processes and threads that it starts write others. */
export const OWN_RECORD = 'own.json'

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
  currentTestId?: string | undefined
  mutantCoverage?: { static: Hits; perTest: Record<string, Hits> }
  hitLimit?: number
  hitCount?: number
}

if (process.env[RECORDS] !== undefined) record(process.env[RECORDS])

function record(folder: string): void {
  const limit = process.env[HIT_LIMIT]
  const instrumented: Instrumented = limit ? { hitLimit: Number(limit), hitCount: 0 } : {}
  Object.assign(globalThis, { __stryker__: instrumented })
  const tests: ProcessRecord['tests'] = []
  const isTestFile = isMainThread && process.argv[1]?.endsWith('.test.ts')
  if (isTestFile) recordTests(instrumented, tests)
  process.on('exit', () => {
    const { static: shared = {}, perTest: byTest = {} } = instrumented.mutantCoverage ?? {}
    const { hitCount } = instrumented
    const written: ProcessRecord = { shared, byTest, tests, ...(hitCount !== undefined && { hitCount }) }
    // A process may outlive its test file, and the folder.
    if (!existsSync(folder)) return
    writeFileSync(join(folder, isTestFile ? OWN_RECORD : `${process.pid}-${threadId}.json`), JSON.stringify(written))
  })
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

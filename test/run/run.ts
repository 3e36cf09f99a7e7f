// npm test and every other suite of tests: its files, and how they run. Words after the name of a suite go to node --test.
import { spawnSync } from 'node:child_process'

interface Suite {
  files: readonly string[]
  /** How many files run at a time; as many as there are cores unless set. */
  atOnce?: number
  /** What is started before the tests. */
  setup?: string
  options?: readonly string[]
}

const SUITES: Readonly<Record<string, Suite>> = {
  all: {
    files: ['src/**/*.test.ts', 'test/**/*.test.ts', 'client/{src,test}/*.test.ts'],
    atOnce: 10,
    options: ['spec', './test/run/slowest.ts'].flatMap((reporter) => [
      `--test-reporter=${reporter}`,
      '--test-reporter-destination=stdout',
    ]),
  },
  file: { files: [] },
  /** What workers may change: requests, connections, sessions, stops. */
  workers: {
    files: [
      'test/spec/{2,3,4-1,4-2,4-4}-*.test.ts',
      'test/api/{browser-callers,conditional-requests,fresh-pages,mcp,unstorable-text}.test.ts',
      'test/connections/{cut-bodies,early-answers,framing,fuzz,pipelining,slow-clients}.test.ts',
      'test/console/{forms,host,sessions}.test.ts',
      'test/processes/{drain,kill-loop}.test.ts',
    ],
    atOnce: 3,
    setup: './test/run/workers-setup.ts',
  },
  /** What depends on how Node.js reads, frames and writes HTTP. That does not depend on the engine. */
  'node-lines': {
    files: [
      'src/http/connections/node-http.test.ts',
      'test/connections/{connections,cut-bodies,early-answers,framing,page-requests,pipelining,stalled-readers}.test.ts',
      'test/{api/conditional-requests,console/forms,spec/4-*}.test.ts',
    ],
    atOnce: 3,
    options: ['--test-skip-pattern=/on PostgreSQL/', '--test-reporter=dot'],
  },
  package: { files: ['assurance/{package,client-package}/*.test.ts'] },
  executable: {
    files: [
      'assurance/executable/*.test.ts',
      'test/spec/{2,4-1,4-2,4-3}-*.test.ts',
      'test/console/{forms,host}.test.ts',
    ],
    atOnce: 3,
    setup: './assurance/executable/setup.ts',
  },
}

/** Returns what `node` is called with. No test file can hang a run (time-limit.ts). */
export function argumentsOf(name: string, words: readonly string[] = []): string[] {
  const { files, atOnce, setup = './test/run/run-setup.ts', options = [] } = SUITES[name]!
  const limits = ['--import=./test/run/time-limit.ts', '--test-timeout=300000', `--test-global-setup=${setup}`]
  const concurrency = atOnce === undefined ? [] : [`--test-concurrency=${atOnce}`]
  return ['--test', ...limits, ...concurrency, ...options, ...words, ...files]
}

if (import.meta.main) {
  const [name = 'all', ...words] = process.argv.slice(2)
  const { status, signal } = spawnSync(process.execPath, argumentsOf(name, words), { stdio: 'inherit' })
  process.exitCode = signal === null ? (status ?? 1) : 1
}

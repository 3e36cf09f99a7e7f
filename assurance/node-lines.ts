// npm run test:node-lines: the HTTP suites on the newest Node.js of other lines than the pinned one, so that a change of Node is seen
// here before a user sees it. Each line is installed from npm on demand, into a folder beside this file.
import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { say } from './harness/say.ts'
import { installNode, ROOT } from './package/old-node.ts'

const LINES = [24, 26]

/** What depends on how Node reads, frames and writes HTTP. */
const FILES = [
  'src/http/connections/node-http.test.ts',
  'test/connections/{connections,cut-bodies,early-answers,framing,page-requests,pipelining,stalled-readers}.test.ts',
  'test/{api/conditional-requests,console/forms,spec/4-*}.test.ts',
]
const OPTIONS = [
  '--test',
  '--import=./test/run/time-limit.ts',
  '--test-timeout=300000',
  '--test-concurrency=3',
  '--test-global-setup=./test/run/run-setup.ts',
  // HTTP does not depend on the engine.
  '--test-skip-pattern=/on PostgreSQL/',
  '--test-reporter=dot',
]

for (const line of LINES) {
  const folder = fileURLToPath(new URL(`node_modules/${line}`, import.meta.url))
  mkdirSync(folder, { recursive: true })
  const node = join(installNode(line, folder), 'node')
  const version = spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout.trim()
  if (version === process.version) {
    say(`${version} is the pinned Node.js: npm test runs on it.`)
    continue
  }
  const started = performance.now()
  say(`The HTTP suites on Node.js ${version}:`)
  const { status } = spawnSync(node, [...OPTIONS, ...FILES], { cwd: ROOT, stdio: 'inherit' })
  say(`${version}: ${status === 0 ? 'passed' : 'FAILED'} in ${Math.round((performance.now() - started) / 1000)} s`)
  if (status !== 0) process.exitCode = 1
}

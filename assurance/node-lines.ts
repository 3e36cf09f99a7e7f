// npm run test:node-lines: the HTTP suites on the newest Node.js of other lines than the pinned one, so that a change of Node is seen
// here before a user sees it. Each line is installed from npm on demand, into a folder beside this file.
import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { argumentsOf } from '../test/run/run.ts'
import { say } from '../test/harness/say.ts'
import { installNode, ROOT } from './package/old-node.ts'

const LINES = [24, 26]

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
  const { status } = spawnSync(node, argumentsOf('node-lines'), { cwd: ROOT, stdio: 'inherit' })
  say(`${version}: ${status === 0 ? 'passed' : 'FAILED'} in ${Math.round((performance.now() - started) / 1000)} s`)
  if (status !== 0) process.exitCode = 1
}

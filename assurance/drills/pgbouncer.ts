// npm run drill pgbouncer: the suites of the store through a real PgBouncer (Debian's package `pgbouncer`).
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const SUITES = ['store', 'store-edges', 'many-instances', 'copy'].map((suite) => `test/${suite}.test.ts`)
const options = ['--test', '--test-timeout=120000', '--test-global-setup=./assurance/drills/pgbouncer-setup.ts']
process.exitCode = spawnSync(process.execPath, [...options, ...SUITES], { cwd: ROOT, stdio: 'inherit' }).status ?? 1

// npm run drill pgbouncer: the suites of the store through a real PgBouncer (Debian's package `pgbouncer`).
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { requirePrograms } from './debian.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const SUITES = ['store/store', 'store/edges', 'store/many-instances', 'commands/copy'].map(
  (suite) => `test/${suite}.test.ts`,
)
/** Builds an index over a session, which is not possible through PgBouncer. */
const SKIPPED = '/partitioned table of animals/'
requirePrograms(['/usr/sbin/pgbouncer'], ['pgbouncer'])
const options = [
  '--test',
  '--test-timeout=300000',
  '--test-global-setup=./assurance/drills/pgbouncer-setup.ts',
  `--test-skip-pattern=${SKIPPED}`,
]
process.exitCode = spawnSync(process.execPath, [...options, ...SUITES], { cwd: ROOT, stdio: 'inherit' }).status ?? 1

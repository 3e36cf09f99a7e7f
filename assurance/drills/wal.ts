// npm run drill wal: two processes write without pause to a SQLite file on a slow disk, with random idempotency keys. Fails
// if the write-ahead log grows past 64 MB, /livez is not answered, or an acknowledged animal is lost or doubled. Reports how
// long /livez took: a checkpoint delays it. --seconds, --clients and --seed take a number; --plant opens a reader that
// keeps checkpoints from completing, and then the drill must fail.
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Clients } from '../../test/harness/failures/clients.ts'
import { conduct } from './conduct.ts'
import { percentile } from '../../test/harness/percentiles.ts'
import { requirePrograms } from './debian.ts'
import { createKey, startInstance } from '../../test/harness/programs/instance.ts'
import { askLivez } from './livez-asker.ts'
import { summary } from './report.ts'
import { COMPILER, compileShim } from './shim.ts'
import { isWhole, stopAndAudit } from '../../test/harness/failures/verdict.ts'

const LOG_LIMIT = 64_000_000
const LOOK_EVERY_MS = 20
const PATIENCE_MS = 60_000

requirePrograms([COMPILER], ['gcc', 'libc6-dev'])
await conduct({ seconds: 60, clients: 32 }, async ({ folder, random, plant, counts: { seconds, clients: count } }) => {
  const file = join(folder, 'petstore.db')
  const database = `sqlite:${file}`
  const key = await createKey(database)
  const env = { LD_PRELOAD: compileShim('slow-sync-shim', folder), PETSTORE_WORKERS: '2' }
  const { port } = await startInstance(database, join(folder, 'instance.log'), { env })
  const url = `http://127.0.0.1:${port}`
  using reader = new DatabaseSync(file)
  if (plant) {
    reader.exec('BEGIN')
    reader.prepare('SELECT count(*) FROM pets').get()
  }
  const clients = new Clients(url, key, { count, patienceMs: PATIENCE_MS, random })
  let longest = 0
  const looking = setInterval(() => (longest = Math.max(longest, statSync(`${file}-wal`).size)), LOOK_EVERY_MS)
  const { times, failures } = await askLivez({ port, seconds })
  clearInterval(looking)
  if (plant) reader.exec('ROLLBACK')
  const audit = await stopAndAudit(url, key, clients)
  const [median, p99, slowest] = [percentile(times, 0.5), percentile(times, 0.99), Math.max(...times)]
  process.stdout.write(
    `${seconds} s, ${count} clients\n${summary(audit)}log, at most         ${(longest / 1e6).toFixed(1)} MB\n` +
      `/livez               ${median.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, slowest ${slowest.toFixed(1)} ms\n`,
  )
  return isWhole(audit) && longest <= LOG_LIMIT && failures.length === 0
})

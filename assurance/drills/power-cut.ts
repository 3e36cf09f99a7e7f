// npm run drill power-cut: simulates power failures under load. The disk keeps only what SQLite has synced, and at every other
// cut a random part of the rest. Fails if an acknowledged animal is lost or doubled, if the database file is damaged, or if a torn
// log is taken for a damaged one. --cuts and --seed take a number; with --plant a sync keeps nothing, and then the drill must
// fail.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { killAll } from '../../test/harness/programs/processes.ts'
import { conduct } from './conduct.ts'
import { requirePrograms } from './debian.ts'
import { cutPowerUnderLoad } from './power.ts'
import { summary } from './report.ts'
import { COMPILER } from './shim.ts'
import { isWhole } from '../../test/harness/failures/verdict.ts'

const CLIENTS = 8

requirePrograms([COMPILER], ['gcc', 'libc6-dev'])
await conduct({ cuts: 80 }, async ({ folder, random, plant, counts: { cuts } }) => {
  const audit = await cutPowerUnderLoad({ folder, cuts, clients: CLIENTS, random, plant })
  await killAll()
  using db = new DatabaseSync(join(folder, 'petstore.db'))
  const { integrity_check: integrity } = db.prepare('PRAGMA integrity_check').get()!
  process.stdout.write(
    `${cuts} power cuts, ${CLIENTS} clients\n${summary(audit)}integrity            ${String(integrity)}\n`,
  )
  const alarms = readdirSync(folder).filter((name) => name.includes('-wal.damaged-'))
  return isWhole(audit) && integrity === 'ok' && (plant || alarms.length === 0)
})

// npm run drill workers: kill -9 of one worker after the other under load, on both engines.
// Fails if an acknowledged animal is lost or doubled, if a create fails despite retries, or if a connection of a process
// other than the killed one breaks.
// --kills and --seed take a number; --plant loses an animal at each kill, and then the drill must fail.
import { conduct } from './conduct.ts'
import { onEachEngine } from './each-engine.ts'
import { summary } from './report.ts'
import { isWhole } from '../../test/harness/failures/verdict.ts'
import { killWorkers } from './worker-kills.ts'

const PROCESSES = 3
const CLIENTS = 8

await conduct({ kills: 20 }, async ({ folder: all, random, plant, counts: { kills } }) =>
  onEachEngine(all, `${kills} workers killed`, async ({ name, database, folder }) => {
    const { connections, ...audit } = await killWorkers({
      folder,
      database,
      processes: PROCESSES,
      kills,
      clients: CLIENTS,
      random,
      plant,
    })
    const { reset, carriedOn, broken } = connections
    process.stdout.write(
      `${name}: ${kills} kills of a worker, ${PROCESSES} processes, ${CLIENTS} clients\n${summary(audit)}`,
    )
    process.stdout.write(
      `connections          ${reset} of killed workers reset, ${carriedOn} of others carried on, ${broken.length} broken\n`,
    )
    return isWhole(audit) && broken.length === 0 && reset > 0 && carriedOn > 0
  }),
)

// npm run drill kill-loop: kill -9 of an instance under load, again and again, on both engines.
// Fails if an acknowledged animal is lost or doubled, or if a create fails despite retries.
// --kills and --seed take a number; --plant loses an animal at each kill, and then the drill must fail.
import { conduct } from './conduct.ts'
import { onEachEngine } from './each-engine.ts'
import { killUnderLoad } from '../../test/harness/failures/kills.ts'
import { summary } from './report.ts'
import { isWhole } from '../../test/harness/failures/verdict.ts'

const CLIENTS = 8

await conduct({ kills: 30 }, async ({ folder: all, random, plant, counts: { kills } }) =>
  onEachEngine(all, `${kills} kills`, async ({ name, database, folder }) => {
    const audit = await killUnderLoad({ folder, database, kills, clients: CLIENTS, random, plant })
    process.stdout.write(`${name}: ${kills} kills, ${CLIENTS} clients\n${summary(audit)}`)
    return isWhole(audit)
  }),
)

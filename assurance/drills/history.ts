// npm run drill history: two instances on one database, killed in turn while clients add, read back and page, on both engines.
// Fails if a client cannot read its animal right after adding it, if paging misses or repeats an animal, or if ids do
// not grow.
// --kills and --seed take a number; --plant loses an animal at each kill, and then the drill must fail.
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { createKey, startInstance } from '../../test/harness/programs/instance.ts'
import { killHard } from '../../test/harness/programs/processes.ts'
import { conduct } from './conduct.ts'
import { onEachEngine } from './each-engine.ts'
import { Historian } from './historian.ts'
import { loseNewest } from '../../test/harness/failures/planted-loss.ts'

const WRITERS = 6
const LONGEST_LIFE_MS = 1000
const SHOWN = 10

await conduct({ kills: 20 }, async ({ folder: all, random, plant, counts: { kills } }) =>
  onEachEngine(all, `${kills} kills`, async ({ name, database, folder }) => {
    const key = await createKey(database)
    const start = (port?: number) =>
      startInstance(database, join(folder, 'instances.log'), port === undefined ? {} : { port })
    const instances = [await start(), await start()]
    const historian = new Historian(
      instances.map(({ url }) => url),
      key,
      WRITERS,
      random,
    )
    for (let kill = 0; kill < kills; kill += 1) {
      await setTimeout(random() * LONGEST_LIFE_MS)
      const { process: child, port } = instances[kill % 2]!
      await killHard(child)
      if (plant) await loseNewest(database)
      instances[kill % 2] = await start(port)
    }
    await historian.stop()
    for (const { process: child } of instances) await killHard(child)
    const { creates, reads, walks, anomalies } = historian
    process.stdout.write(
      `${name}: ${kills} kills, ${creates.length} creates, ${reads} reads, ${walks} walks, ${anomalies.length} anomalies\n`,
    )
    for (const anomaly of anomalies.slice(0, SHOWN)) process.stdout.write(`  ${anomaly}\n`)
    return anomalies.length === 0 && creates.length > 0 && walks > 0
  }),
)

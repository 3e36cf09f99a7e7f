// Kills and restarts an instance repeatedly while clients add animals.
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { createKey, startInstance } from '../programs/instance.ts'
import { killHard } from '../programs/processes.ts'
import type { Random } from '../random.ts'
import { Clients } from './clients.ts'
import { loseNewest } from './planted-loss.ts'
import { type Audit, stopAndAudit } from './verdict.ts'

/** A create that takes longer, retries included, has failed. */
const PATIENCE_MS = 60_000
/** The instance is killed up to this long after its first creates. */
const LONGEST_LIFE_MS = 400

export interface Kills {
  /** The folder for the log. */
  folder: string
  database: string
  kills: number
  clients: number
  random: Random
  /** Injects the fault: deletes an animal at each kill. */
  plant?: boolean
}

export async function killUnderLoad({
  folder,
  database,
  kills,
  clients: count,
  random,
  plant = false,
}: Kills): Promise<Audit> {
  const log = join(folder, 'instance.log')
  let instance = await startInstance(database, log)
  const { port, url } = instance
  const key = await createKey(database)
  const clients = new Clients(url, key, { count, patienceMs: PATIENCE_MS, random })
  for (let kill = 0; kill < kills; kill += 1) {
    await clients.nextCreate()
    await setTimeout(random() * LONGEST_LIFE_MS)
    await killHard(instance.process)
    if (plant) await loseNewest(database)
    instance = await startInstance(database, log, { port })
  }
  const audit = await stopAndAudit(url, key, clients)
  await killHard(instance.process)
  return audit
}

// npm run drill failover: kills the primary database several times, then an instance, while clients add animals.
// Fails if an acknowledged animal is lost or doubled, or if a create fails despite retries.
// --failovers and --seed take a number; --plant loses an animal, and then the drill must fail.
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { createKey, startInstance } from '../harness/instance.ts'
import { killHard, run } from '../harness/processes.ts'
import { say } from '../harness/say.ts'
import { Clients } from './clients.ts'
import { conduct, type Terms } from './conduct.ts'
import { requirePrograms } from './debian.ts'
import { POSTGRES_PROGRAMS, postgresVersion } from './debian-postgres.ts'
import { HAPROXY, startLoadBalancer } from './load-balancer.ts'
import { loseNewest } from './planted-loss.ts'
import { PostgresPair } from './postgres-pair.ts'
import { faultTable, type FaultWindow, summary } from './report.ts'
import { isWhole, stopAndAudit } from './verdict.ts'

const CLIENTS = 8
/** How long the clients work undisturbed between two faults. */
const CALM_MS = 3000
/** A create that takes longer, retries included, has failed. */
const PATIENCE_MS = 30_000

async function drill({ folder, random, plant, counts: { failovers } }: Terms<'failovers'>): Promise<boolean> {
  say('Starting a primary, a synchronous standby, two instances and HAProxy')
  const pair = await PostgresPair.start(join(folder, 'postgres'))
  const instances = [
    await startInstance(pair.url, join(folder, 'instance-1.log')),
    await startInstance(pair.url, join(folder, 'instance-2.log')),
  ]
  const url = await startLoadBalancer(
    folder,
    instances.map(({ port }) => port),
  )
  const key = await createKey(pair.url)

  const clients = new Clients(url, key, { count: CLIENTS, patienceMs: PATIENCE_MS, random })
  const injected: FaultWindow[] = []
  await setTimeout(CALM_MS)
  for (let round = 1; round <= failovers; round += 1) {
    say(`kill -9 of the primary, ${round} of ${failovers}; the standby is promoted`)
    const at = performance.now()
    await pair.killPrimary()
    pair.promote()
    await clients.nextCreate()
    injected.push({ name: `primary killed, ${round} of ${failovers}`, at, until: performance.now() + CALM_MS })
    await setTimeout(CALM_MS)
    await pair.addStandby()
    await setTimeout(CALM_MS)
  }
  say('kill -9 of an instance')
  const at = performance.now()
  await killHard(instances[0]!.process)
  await setTimeout(CALM_MS)
  injected.push({ name: 'instance killed', at, until: performance.now() })
  if (plant) await loseNewest(pair.url)
  const audit = await stopAndAudit(url, key, clients)
  const versions = [postgresVersion(), run(HAPROXY, ['-v']).split(' 20')[0]!, `Node.js ${process.version}`]
  process.stdout.write(
    `${versions.join(', ')}; ${CLIENTS} clients\n\n${faultTable(injected, clients)}\n${summary(audit)}`,
  )
  return isWhole(audit)
}

requirePrograms([...POSTGRES_PROGRAMS, HAPROXY], ['postgresql-15', 'haproxy'])
await conduct({ failovers: 3 }, drill)

// npm run drill patroni: injects one fault after the other into three PostgreSQL nodes under Patroni, while clients add animals
// through HAProxy and two instances. Fails if an acknowledged animal is lost or doubled, or if creates do not succeed again.
// A leader that freezes together with its Patroni and resumes later is shown but not judged: preventing loss then takes a watchdog.
// --rounds and --seed take a number; --plant loses an animal, and then the drill must fail.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { createKey, startInstance } from '../../test/harness/programs/instance.ts'
import { run } from '../../test/harness/programs/processes.ts'
import type { Random } from '../../test/harness/random.ts'
import { say } from '../../test/harness/say.ts'
import { Clients } from '../../test/harness/failures/clients.ts'
import { conduct, type Terms } from './conduct.ts'
import { requirePrograms } from './debian.ts'
import { POSTGRES_PROGRAMS, postgresVersion } from './debian-postgres.ts'
import { startLoadBalancer } from './load-balancer.ts'
import { HAPROXY } from '../../test/harness/deployment/proxy-servers.ts'
import { ETCD, PatroniCluster, PATRONICTL } from './patroni-cluster.ts'
import { type Fault, FAULTS, FROZEN_LEADER } from './patroni-faults.ts'
import { PATRONI } from './patroni-node.ts'
import { loseNewest } from '../../test/harness/failures/planted-loss.ts'
import { counted, faultTable, type FaultWindow, summary } from './report.ts'
import { isWhole, stopAndAudit } from '../../test/harness/failures/verdict.ts'

/** The clients wait after each create, because Patroni and etcd share this machine's processors with them. */
const CLIENTS = { count: 8, restMs: 20, patienceMs: 120_000 }
/** The least time that the clients work undisturbed before a fault, and the time after it. */
const CALM_MS = 2000

async function drill({ folder, random, plant, counts: { rounds } }: Terms<'rounds'>): Promise<boolean> {
  say('Starting etcd, three nodes, two instances and HAProxy')
  const cluster = await PatroniCluster.start(join(folder, 'cluster'))
  const logs = ['instance-1.log', 'instance-2.log'].map((name) => join(folder, name))
  const instances = await Promise.all(logs.map((log) => startInstance(cluster.url, log)))
  const url = await startLoadBalancer(
    folder,
    instances.map(({ port }) => port),
  )
  const key = await createKey(cluster.url)

  const clients = new Clients(url, key, { ...CLIENTS, random })
  const injected: FaultWindow[] = []
  for (let round = 1; round <= rounds; round += 1)
    for (const fault of FAULTS) injected.push(await inject(fault, cluster, clients, random))
  if (plant) await loseNewest(cluster.url)
  const audit = await stopAndAudit(url, key, clients)
  process.stdout.write(
    `${versions()}; ${CLIENTS.count} clients\n\n${faultTable(injected, clients)}\n${summary(audit)}${databaseMessages(logs)}`,
  )

  const since = new Date()
  const others = new Clients(url, key, { ...CLIENTS, random, prefix: 'Later animal' })
  try {
    const frozen = await inject(FROZEN_LEADER, cluster, others, random)
    const shown = await stopAndAudit(url, key, others)
    process.stdout.write(
      `\nNot judged, since there is no watchdog:\n${faultTable([frozen], others)}\n${summary(shown)}${databaseMessages(logs, since)}`,
    )
  } catch (error) {
    process.stdout.write(
      `\nNot judged, since there is no watchdog: ${FROZEN_LEADER.name}: ${String(error)}\n${databaseMessages(logs, since)}`,
    )
  }
  return isWhole(audit)
}

/** Injects a fault and ends it. Rejects if creates do not succeed again, or if the cluster does not settle. */
async function inject(fault: Fault, cluster: PatroniCluster, clients: Clients, random: Random): Promise<FaultWindow> {
  await cluster.settled()
  await setTimeout(CALM_MS * (1 + random()))
  say(fault.name)
  const at = performance.now()
  const end = await fault.begin(cluster)
  await clients.nextCreate()
  end()
  await setTimeout(CALM_MS)
  await cluster.settled()
  return { name: fault.name, at, until: performance.now() }
}

function versions(): string {
  const programs = [
    run(PATRONI, ['--version']),
    run(ETCD, ['--version']).split('\n', 1)[0]!,
    postgresVersion(),
    run(HAPROXY, ['-v']).split(' 20')[0]!,
  ]
  return programs.map((version) => version.trim()).join(', ')
}

/** Counts the instances' log lines about the database: lost, found, replaced or restarted. */
function databaseMessages(logs: readonly string[], since = new Date(0)): string {
  const lines = logs
    .flatMap((log) => readFileSync(log, 'utf8').split('\n'))
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as { time: string; msg: string })
  const messages = lines.filter(({ time, msg }) => msg.startsWith('database ') && new Date(time) >= since)
  return `${'instances’ logs'.padEnd(20)} ${counted(messages.map(({ msg }) => msg))}\n`
}

requirePrograms(
  [...POSTGRES_PROGRAMS, HAPROXY, PATRONI, PATRONICTL, ETCD],
  ['postgresql-15', 'haproxy', 'patroni', 'etcd-server'],
)
await conduct({ rounds: 1 }, drill)

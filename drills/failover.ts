// npm run drill:failover: the primary database dies, then an instance does, while clients add animals all the while.
// Fails where an acknowledged animal is lost or doubled, or where a client that tries again still sees a failure.
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { Clients } from './clients.ts'
import { requirePrograms } from './debian.ts'
import { createKey, startInstance } from './instance.ts'
import { HAPROXY, startLoadBalancer } from './load-balancer.ts'
import { POSTGRES_PROGRAMS, PostgresPair } from './postgres-pair.ts'
import { killAll, killHard, run, until } from './processes.ts'
import { type Blow, blowTable, summary } from './report.ts'
import { compare } from './verdict.ts'

const CLIENTS = 8
const FAILOVERS = 3
/** How long the clients work undisturbed between two blows. */
const CALM_MS = 3000
/** A create that takes longer has failed. */
const PATIENCE_MS = 30_000

async function drill(folder: string): Promise<boolean> {
  say('Starting a primary, a synchronous standby, two instances and HAProxy')
  const pair = await PostgresPair.start(join(folder, 'postgres'))
  const instances = [await startInstance(pair.url, join(folder, 'instance-1.log')), await startInstance(pair.url, join(folder, 'instance-2.log'))]
  const url = await startLoadBalancer(folder, instances.map(({ port }) => port))
  const key = createKey(pair.url)

  const clients = new Clients(url, key, CLIENTS, PATIENCE_MS)
  const blows: Blow[] = []
  await setTimeout(CALM_MS)
  for (let round = 1; round <= FAILOVERS; round += 1) {
    say(`kill -9 of the primary, ${round} of ${FAILOVERS}; the standby is promoted`)
    const at = performance.now()
    await pair.killPrimary()
    pair.promote()
    await nextCreate(clients)
    blows.push({ name: `primary killed, ${round} of ${FAILOVERS}`, at, until: performance.now() + CALM_MS })
    await setTimeout(CALM_MS)
    await pair.addStandby()
    await setTimeout(CALM_MS)
  }
  say('kill -9 of an instance')
  const at = performance.now()
  await killHard(instances[0]!.process)
  await setTimeout(CALM_MS)
  blows.push({ name: 'instance killed', at, until: performance.now() })
  await clients.stop()

  const verdict = await compare(url, key, clients.acknowledged)
  const versions = [pair.version, run(HAPROXY, ['-v']).split(' 20')[0]!, `Node.js ${process.version}`]
  process.stdout.write(`${versions.join(', ')}; ${CLIENTS} clients\n\n${blowTable(blows, clients)}\n${summary(clients, verdict)}`)
  return verdict.lost.length === 0 && verdict.doubled.length === 0 && clients.failed.length === 0
}

/** Waits for a create that is acknowledged from now on. */
async function nextCreate({ acknowledged }: Clients): Promise<void> {
  const before = acknowledged.length
  await until('a create succeeds again', async () => acknowledged.length > before + CLIENTS, 60_000)
}

function say(line: string): void {
  process.stderr.write(`${line}\n`)
}

requirePrograms([...POSTGRES_PROGRAMS, HAPROXY], ['postgresql-15', 'haproxy'])
const folder = mkdtempSync(join(tmpdir(), 'petstore-drill-'))
// PostgreSQL's user must get through to a folder of its own in there.
chmodSync(folder, 0o711)
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void killAll().finally(() => process.exit(1)))
let held = false
try {
  held = await drill(folder)
} finally {
  await killAll()
  if (held) rmSync(folder, { recursive: true })
  else say(`The logs are kept in ${folder}`)
}
// Sockets of clients that were cut off may linger.
process.exit(held ? 0 : 1)

// npm run drill citus: animals distributed over an installed Citus: the suites of the store, kills of each node, a new node.
// Then the upgrade of an instance, all while clients add animals. Fails if an acknowledged animal is lost or doubled, a create fails
// despite retries, a fault is answered with anything but 503, or a request breaks while the cluster grows or an instance is upgraded.
// Citus is found by pg_config or PG_BIN. --seed takes a number; --suites 0 leaves the suites out; --plant loses an animal.
import { spawnSync } from 'node:child_process'
import { cpSync, globSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { readConfig } from '../../src/config.ts'
import type { NewPet, PetStatus } from '../../src/contract/pets.ts'
import { openStore } from '../../src/store/opening/open-store.ts'
import { COUNTED_MOST } from '../../src/store/pet-counts.ts'
import { askPostgres } from '../../test/harness/databases/ask-postgres.ts'
import { CITUS_NODES, newClusterDatabase, SHARED_POSTGRES } from '../../test/harness/databases/engines.ts'
import { createKey, MAIN, petstore, settings, startInstance } from '../../test/harness/programs/instance.ts'
import type { PostgresServer } from '../../test/harness/databases/postgres-server.ts'
import { collect, start } from '../../test/harness/programs/processes.ts'
import { say } from '../../test/harness/say.ts'
import { until } from '../../test/harness/until.ts'
import { countPrepared, grow, requireCitus, startNode } from './citus-cluster.ts'
import { Clients } from '../../test/harness/failures/clients.ts'
import { conduct, type Terms } from './conduct.ts'
import { loseNewest } from '../../test/harness/failures/planted-loss.ts'
import { counted, faultTable, type FaultWindow, summary } from './report.ts'
import { Traffic } from '../../test/harness/failures/traffic.ts'
import { compare, isWhole, stopAndAudit } from '../../test/harness/failures/verdict.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const SUITES =
  'store/{store,edges,bulk,imports,categories,animal-changes,search,many-instances} commands/{copy,import} api/idempotency'
/** These change animals by hand, which no code counts, or replace the database of the coordinator alone. */
const SKIPPED = '/partitioned table of animals/'
const CLIENTS = 8
const ANIMALS = 100_000
const CALM_MS = 3000
const DOWN_MS = 2000
/** Longer than a node needs to return and to commit what it has prepared (`citus.recover_2pc_interval`). */
const PATIENCE_MS = 90_000

async function drill({ folder, random, seed, plant, counts }: Terms<'suites'>): Promise<boolean> {
  const [coordinator, ...nodes] = await Promise.all([startNode(), startNode(), startNode()])
  const [version] = await askPostgres(coordinator.url, 'SHOW server_version')
  say(`PostgreSQL ${String(version!['server_version'])} with Citus: a coordinator and ${nodes.length} nodes`)
  if (counts.suites > 0 && !passSuites(coordinator, nodes)) return false
  const database = await newClusterDatabase(
    coordinator.url,
    nodes.map(({ url }) => url),
  )
  const instances = [
    await startInstance(database.url, join(folder, 'instance-1.log')),
    await startInstance(database.url, join(folder, 'instance-2.log')),
  ] as const
  const key = await createKey(database.url)
  const { url } = instances[0]
  const readyIs = (status: number) => async () => (await fetch(`${url}/readyz`)).status === status

  if (!(await distributeUnderTraffic(database.url, url, key, seed))) return false

  const clients = new Clients(url, key, { count: CLIENTS, patienceMs: PATIENCE_MS, random, prefix: 'During kills' })
  const injected: FaultWindow[] = []
  for (const [name, node] of Object.entries({
    'a node': nodes[0],
    'the other one': nodes[1],
    'the coordinator': coordinator,
  })) {
    await setTimeout(CALM_MS)
    say(`Kill of ${name}`)
    const at = performance.now()
    await node.stop()
    await until(readyIs(503), 'the instance is not ready without a node')
    await setTimeout(DOWN_MS)
    await node.start()
    await until(readyIs(200), 'the instance is ready again')
    await clients.nextCreate()
    injected.push({ name: `${name} killed`, at, until: performance.now() })
  }
  await clients.stop()
  await until(async () => (await countPrepared(database.url)) === 0, 'what was prepared is committed', PATIENCE_MS)
  if (plant) await loseNewest(database.url)
  const audit = await stopAndAudit(url, key, clients)
  process.stdout.write(`${faultTable(injected, clients)}\n${summary(audit)}\n`)
  const others = clients.setbacks.map(({ kind }) => kind).filter((kind) => !kind.startsWith('503'))
  if (others.length > 0) say(`Answered otherwise than 503: ${counted(others)}`)
  if (!isWhole(audit) || others.length > 0) return false

  const traffic = new Traffic(url, key, CLIENTS, seed + 1)
  await setTimeout(CALM_MS)
  const third = await startNode()
  const moved = await grow(database.url, third)
  say(`a third node: ${moved} shards moved to it`)
  await setTimeout(CALM_MS)
  instances[1].process.kill('SIGTERM')
  await once(instances[1].process, 'exit')
  const upgraded = await startInstance(database.url, join(folder, 'upgraded.log'), { main: makeNextRelease(folder) })
  say('an instance of a release with two more migrations: a column, and an index that is built while creates go on')
  await setTimeout(CALM_MS)
  await traffic.stop()
  const verdict = await compare(upgraded.url, key, traffic.acknowledged)
  const { answered, broken, slowestMs } = traffic
  say(
    `${answered} requests while the cluster grew and an instance was upgraded, slowest ${Math.round(slowestMs)} ms; broken: ${counted(broken)}`,
  )
  const [stored] = await askPostgres(database.url, 'SELECT count(*)::int FROM pets')
  process.stdout.write(petstore(database.url, ['doctor']).replace(/^ok.*\n/gm, ''))
  const isSame = stored!['count'] === verdict.stored && moved > 0
  return isSame && broken.length === 0 && verdict.lost.length === 0 && verdict.doubled.length === 0
}

/** Distributes the animals of two running instances. A store that was opened before changes one after it. */
async function distributeUnderTraffic(database: string, url: string, key: string, seed: number): Promise<boolean> {
  const store = await openStore(readConfig({ database }, {}).database)
  await askPostgres(
    database,
    `INSERT INTO pets (name, category_id, status)
     SELECT 'Before ' || n, 1, CASE n % 2 WHEN 0 THEN 'pending' ELSE 'sold' END FROM generate_series(1, ${ANIMALS}) AS n`,
  )
  const traffic = new Traffic(url, key, CLIENTS, seed)
  await setTimeout(CALM_MS)
  const began = performance.now()
  const command = [MAIN, 'distribute', '--shards', '4']
  const { code, stderr } = await collect(start(process.execPath, command, { env: settings(database) }))
  if (code !== 0) throw new Error(stderr)
  const seconds = Math.round((performance.now() - began) / 1000)
  const event = { at: 0, accountId: 'acct_drill', action: 'pet.changed', via: 'drill', subject: 'drill' } as const
  const [first, second] = await store.pets.list({ limit: 2, before: BigInt(ANIMALS) })
  const { id, ...pet } = first!
  const changed: NewPet = { ...pet, name: 'Renamed', status: pet.status === 'sold' ? 'pending' : 'sold' }
  await store.pets.update(id, pet, changed, event)
  await store.pets.remove(second!.id, second!, event)
  await setTimeout(CALM_MS)
  await traffic.stop()
  const { answered, broken, slowestMs, acknowledged } = traffic
  const { lost, doubled } = await compare(url, key, acknowledged)
  const kept = await store.pets.countByStatus()
  const found = await askPostgres(database, 'SELECT status, count(*)::int FROM pets GROUP BY status')
  const byName = async (word: string) =>
    (await store.pets.search({ words: [word], limit: 9 })).pets.map((one) => one.id)
  const named = await Promise.all(['renamed', `${id}`, `${second!.id}`].map(byName))
  const misnamed = named.flat().filter((one) => one !== id).length + Math.abs(named[0]!.length - 1)
  await store.close()
  const miscounted = found.filter(
    ({ status, count }) => kept[status as PetStatus] !== Math.min(Number(count), COUNTED_MOST + 1),
  )
  say(
    `petstore distribute with ${ANIMALS} animals took ${seconds} s; ${answered} requests, slowest ${Math.round(slowestMs)} ms, broken: ${counted(broken)}; ${lost.length} lost, ${doubled.length} doubled, ${miscounted.length} counts and ${misnamed} names wrong`,
  )
  return misnamed === 0 && [broken, lost, doubled, miscounted].every(({ length }) => length === 0)
}

function passSuites(coordinator: PostgresServer, nodes: readonly PostgresServer[]): boolean {
  say('The suites of the store, on distributed databases')
  const env = { [SHARED_POSTGRES]: coordinator.url, [CITUS_NODES]: nodes.map(({ url }) => url).join() }
  const options = ['--test', '--test-timeout=300000', '--test-concurrency=2', '--test-reporter=dot']
  const files = SUITES.split(' ').flatMap((suite) => globSync(`test/${suite}.test.ts`, { cwd: ROOT }))
  const words = [...options, `--test-skip-pattern=${SKIPPED}`, ...files]
  return (
    spawnSync(process.execPath, words, { cwd: ROOT, env: { ...process.env, ...env }, stdio: 'inherit' }).status === 0
  )
}

/** Copies this release with two more migrations; returns its main program. */
function makeNextRelease(folder: string): string {
  const next = join(folder, 'next')
  for (const part of ['src', 'package.json']) cpSync(join(ROOT, part), join(next, part), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(next, 'node_modules'))
  const migrations = join(next, 'src/store/postgres/migrations')
  const own = readdirSync(migrations).length
  const numbered = (name: string, nth: number) => join(migrations, `${String(own + nth).padStart(4, '0')}-${name}.sql`)
  writeFileSync(numbered('next', 1), '-- compatible from 1\n\nALTER TABLE pets ADD COLUMN next TEXT;\n')
  const index = 'CREATE INDEX CONCURRENTLY pets_by_name ON pets (name, id);'
  writeFileSync(numbered('index', 2), `-- compatible from 1\n-- concurrently\n\n${index}\n`)
  return join(next, 'src/main.ts')
}

requireCitus()
await conduct({ suites: 1 }, drill)

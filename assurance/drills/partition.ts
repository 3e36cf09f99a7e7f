// npm run drill partition: moves animals into partitions while two instances serve, crosses two borders, upgrades one instance.
// Fails if a request fails, or an acknowledged animal is lost or doubled. --animals and --clients take a number; --plant sets the
// sequence of the ids back, and then the drill must fail. The first instance is of the commit FROM=…, there and back.
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { askPostgres } from '../harness/ask-postgres.ts'
import { newPostgresDatabase } from '../harness/engines.ts'
import { createKey, type Instance, MAIN, petstore, settings, startInstance } from '../harness/instance.ts'
import { startPostgres } from '../harness/postgres-server.ts'
import { collect, run, start } from '../harness/processes.ts'
import { say } from '../harness/say.ts'
import { until } from '../harness/until.ts'
import { conduct, type Terms } from './conduct.ts'
import { Traffic } from './traffic.ts'
import { compare } from './verdict.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const SIZE = 1_000_000
/** How many ids before a border creates go on, and how long the chore may take. */
const NEAR = 20
const CHORE_WITHIN_MS = 60_000

async function drill({
  folder,
  seed,
  plant,
  counts: { animals, clients },
}: Terms<'animals' | 'clients'>): Promise<boolean> {
  const postgres = await startPostgres('fsync=on')
  const { url: database } = await newPostgresDatabase(postgres.url)
  const old = unpack(process.env['FROM'], folder)
  petstore(database, ['migrate'])
  const ask = async (query: string) => Number(Object.values((await askPostgres(database, query))[0] ?? {})[0])
  say(`${animals} animals; the first instance is of ${process.env['FROM'] ?? 'this checkout'}`)
  await ask(`INSERT INTO pets (name, category_id, status)
    SELECT 'Filled ' || n, n % 50, CASE n % 10 WHEN 0 THEN 'pending' ELSE 'available' END FROM generate_series(1, ${animals}) AS n`)
  const key = await createKey(database)
  const launch = (main: string) => startInstance(database, join(folder, 'instances.log'), { main })
  let first = await launch(old)
  const second = await launch(MAIN)
  const traffics: Traffic[] = []
  const serve = ({ url }: Instance) =>
    traffics[traffics.push(new Traffic(url, key, clients, seed + traffics.length)) - 1]!
  let ofFirst = serve(first)
  const ofSecond = serve(second)

  say(`petstore partition --size ${SIZE}`)
  const command = [MAIN, 'partition', '--size', String(SIZE), '--json']
  const { code, stdout, stderr } = await collect(start(process.execPath, command, { env: settings(database) }))
  if (code !== 0) throw new Error(stderr)
  const { lockedMs } = JSON.parse(stdout) as { lockedMs: number }
  if (plant) await ask("SELECT setval('pets_id_seq', 1)")

  const readEnd = () => ask("SELECT max(substring(relname FROM 'pets_below_(\\d+)$')::bigint) FROM pg_class")
  for (const _ of [1, 2]) {
    const end = await readEnd()
    const border = end - SIZE
    say(`creates cross ${border}`)
    await ask(`SELECT setval('pets_id_seq', ${border - NEAR})`)
    await until(async () => (await ask('SELECT max(id) FROM pets')) > border + NEAR, 'creates have crossed it')
    await until(async () => (await readEnd()) > end, 'an instance has made the next partition', CHORE_WITHIN_MS)
  }
  for (const main of [MAIN, old, MAIN]) {
    say(`the first instance is replaced by ${main === MAIN ? 'this checkout' : 'the older one'}`)
    await ofFirst.stop()
    first.process.kill('SIGTERM')
    await once(first.process, 'exit')
    first = await launch(main)
    ofFirst = serve(first)
    await until(() => ofFirst.answered > 50, 'it serves')
  }
  for (const traffic of [ofFirst, ofSecond]) await traffic.stop()
  const broken = traffics.flatMap((traffic) => traffic.broken)
  const acknowledged = traffics.flatMap((traffic) => traffic.acknowledged)
  const answered = traffics.reduce((sum, traffic) => sum + traffic.answered, 0)
  const slowest = Math.max(...traffics.map(({ slowestMs }) => slowestMs))
  const beyond = await ask('SELECT count(*) FROM pets_beyond')
  const { lost, doubled } = await compare(second.url, key, acknowledged)
  await postgres.end()
  process.stdout.write(
    `${answered} answered, ${broken.length} broken, ${acknowledged.length} creates, ${lost.length} lost, ${doubled.length} doubled, ${beyond} beyond, slowest ${Math.round(slowest)} ms, locked ${Math.ceil(lockedMs)} ms\n`,
  )
  for (const [what, all] of Map.groupBy(broken, (one) => one))
    process.stdout.write(`  broken: ${all.length} × ${what}\n`)
  return answered > 0 && [broken, lost, doubled].every(({ length }) => length === 0) && beyond === 0
}

/** Unpacks the program of a commit; returns the path of its main file. */
function unpack(commit: string | undefined, folder: string): string {
  if (commit === undefined) return MAIN
  const path = join(folder, 'old')
  mkdirSync(path)
  run('git', ['-C', ROOT, 'archive', '--output', join(folder, 'old.tar'), commit])
  spawnSync('tar', ['-xf', join(folder, 'old.tar'), '-C', path])
  symlinkSync(join(ROOT, 'node_modules'), join(path, 'node_modules'))
  return join(path, 'src/main.ts')
}

await conduct({ animals: 200_000, clients: 4 }, drill)

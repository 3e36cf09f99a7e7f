// npm run drill backup: backs up a store while clients add animals, and restores it where the old one stood and into an empty place, on both
// engines, by the commands of deploy/README.md as they stand there. Before the first restore the database is changed as a newer release would.
// Fails if an animal is missing that was acknowledged before the backup began, if any differs, or if the restored service does not work.
// Needs Debian's PostgreSQL, which has pg_dump. Animals that are distributed over Citus are backed up in another way (docs/scaling.md).
// --creates and --seed take a number; --plant also expects what was acknowledged after the backup, and then the drill must fail.
import { execFile as start } from 'node:child_process'
import { cpSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { freePort } from '../harness/free-port.ts'
import { type Instance, petstore, startInstance } from '../harness/instance.ts'
import { killAll, stop } from '../harness/processes.ts'
import { until } from '../harness/until.ts'
import { deployFile, type Engine, ENGINES, type Place } from './backup-places.ts'
import { Clients } from './clients.ts'
import { conduct, type Terms } from './conduct.ts'
import { requirePrograms } from './debian.ts'
import { PROGRAMS } from './debian-postgres.ts'
import { findFaults, witnessOf, type Witness } from './restored.ts'
import { readAll } from './verdict.ts'

const CLIENTS = 8
/** So many that the backup takes a moment. */
const SEEDED = 5000
const PATIENCE_MS = 60_000

const execFile = promisify(start)

/** Returns the commands of the document for a backup, and those that restore it. */
function documented({ named, backsUp }: Engine): { backup: string[]; restore: string[] } {
  const blocks = Array.from(deployFile('README.md').matchAll(/^ *```sh\n(.*?)^ *```$/gms), ([, block]) => block!)
  const block = blocks.find((text) => text.includes(named))
  const lines = block?.trim().split(/\n */) ?? []
  const last = lines.findIndex((line) => backsUp.test(line))
  if (last === -1) throw new Error(`deploy/README.md has no block of commands with ${named} that begins with a backup`)
  return { backup: lines.slice(0, last + 1), restore: lines.slice(last + 1) }
}

/** Follows the commands in a place: starts and stops its instances, and runs the others in a shell. */
class Site {
  readonly place: Place
  instances: Instance[] = []

  constructor(place: Place) {
    this.place = place
  }

  async start(): Promise<void> {
    const { database, folder, instances: count } = this.place
    for (let number = 1; number <= count; number += 1)
      this.instances.push(
        await startInstance(database, join(folder, `instance-${number}.log`), { port: await freePort() }),
      )
  }

  async follow(commands: readonly string[]): Promise<void> {
    const script: string[] = []
    // Stops at a failure, as the && of the document does. Does not block: the clients are at work.
    const runScript = () =>
      execFile('sh', ['-e', '-c', ['cd "$0"', ...script.splice(0)].join('\n'), this.place.folder], {
        env: { ...process.env, ...this.place.env },
      })
    for (const command of commands) {
      const [, signal] =
        /^(?:systemctl|docker compose -f deploy\/compose\.yaml) (start|stop) petstore(?:-1|\.socket) petstore/.exec(
          command,
        ) ?? []
      if (signal === undefined)
        script.push(this.place.adapt(command.replace(/ &&$/, '')).replaceAll('2027-01-31', '$(date +%F)'))
      else await runScript()
      if (signal === 'stop') await Promise.all(this.instances.splice(0).map(({ process: child }) => stop(child)))
      if (signal === 'start') await this.start()
    }
    await runScript()
  }
}

async function onEngine(name: string, engine: Engine, terms: Terms<'creates'>): Promise<boolean> {
  const { random, plant, counts } = terms
  const { backup, restore } = documented(engine)
  const newSite = async (words: string) => {
    const folder = join(terms.folder, `${name} ${words}`.replaceAll(' ', '-'))
    mkdirSync(folder)
    const site = new Site(await engine.newPlace(folder))
    await site.start()
    return site
  }
  const old = await newSite('old')
  petstore(old.place.database, ['seed', '--count', String(SEEDED)])
  const { url } = old.instances[0]!
  const known = await witnessOf(old.place.database, url)
  const clients = new Clients(url, known.key, { count: CLIENTS, patienceMs: PATIENCE_MS, random })
  await until(() => clients.acknowledged.length >= counts.creates, 'enough animals are added')
  const before = clients.acknowledged.slice()
  await old.follow(backup)
  const during = clients.acknowledged.length - before.length
  await clients.nextCreate()
  await clients.stop()
  const acknowledged = plant ? clients.acknowledged : before
  const witness: Witness = { ...known, acknowledged, listed: await readAll(url, known.key) }
  await old.place.upgrade('CREATE TABLE of_a_newer_release (id INTEGER)')
  process.stdout.write(`${name}: ${before.length} acknowledged before the backup, ${during} during it\n`)

  const empty = await newSite('empty')
  cpSync(old.place.backups, empty.place.backups, { recursive: true, filter: (path) => !path.endsWith('.log') })
  let held = clients.failed.length === 0
  for (const [where, site] of [
    ['where it stood', old],
    ['into an empty place', empty],
  ] as const) {
    await site.follow(restore)
    const faults = await findFaults(
      site.place.database,
      site.instances.map((instance) => instance.url),
      witness,
    )
    process.stdout.write(`  restored ${where}: ${faults.join('; ') || 'whole, and it works'}\n`)
    held &&= faults.length === 0
  }
  await killAll()
  return held
}

requirePrograms(
  ['pg_dump', 'pg_restore', 'postgres'].map((program) => join(PROGRAMS, program)),
  ['postgresql-15'],
)
process.env['PG_BIN'] = PROGRAMS
await conduct({ creates: 1000 }, async (terms) => {
  let held = true
  for (const [name, engine] of Object.entries(ENGINES)) held = (await onEngine(name, engine, terms)) && held
  return held
})

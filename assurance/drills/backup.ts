// npm run drill backup: backs up a store while clients add animals, and restores it where the old one stood and into an empty place, on both
// engines, by the commands of deploy/README.md as they stand there. Before the first restore the database is changed as a newer release would.
// Fails if an animal is missing that was acknowledged before the backup began, if any differs, or if the restored service does not work.
// Needs Debian's PostgreSQL, which has pg_dump. Animals that are distributed over Citus are backed up in another way (docs/scaling.md).
// --creates and --seed take a number; --plant also expects what was acknowledged after the backup, and then the drill must fail.
import assert from 'node:assert/strict'
import { cpSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../test/harness/connections/free-port.ts'
import { type Instance, petstore, startInstance } from '../../test/harness/programs/instance.ts'
import { killAll, stop } from '../../test/harness/programs/processes.ts'
import { until } from '../../test/harness/until.ts'
import { deployFile, type Engine, ENGINES, type Place } from './backup-places.ts'
import { Clients } from '../../test/harness/failures/clients.ts'
import { conduct, type Terms } from './conduct.ts'
import { requirePrograms } from './debian.ts'
import { PROGRAMS } from './debian-postgres.ts'
import { runAsOperator } from './operator-shell.ts'
import { findFaults, witnessOf, type Witness } from './restored.ts'
import { readAll } from '../../test/harness/failures/verdict.ts'

const CLIENTS = 8
/** So many that the backup takes a moment. */
const SEEDED = 5000
const PATIENCE_MS = 60_000

/** Returns the commands of the document that make a backup, and those that restore one. */
function documented({ backs, restores }: Engine): { backup: string; restore: string } {
  const document = deployFile('README.md')
  const [, backup] = backs.exec(document) ?? []
  const blocks = Array.from(document.matchAll(/^( *)```sh\n(.*?)^\1```$/gms), ([, , block]) => block!)
  const restore = blocks.find((block) => block.includes(restores))
  if (backup === undefined || restore === undefined)
    throw new Error(`deploy/README.md has no commands like ${backs} and ${restores}`)
  return { backup, restore }
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

  /** The name and the content of each backup. */
  get backups(): Map<string, Buffer> {
    const names = readdirSync(this.place.backups).filter((name) => /^petstore-\d[^]*\.(?:db|dump)$/.test(name))
    return new Map(names.map((name) => [name, readFileSync(join(this.place.backups, name))]))
  }

  /** Runs commands that name an example of a backup, for the one that is there. */
  follow(commands: string): Promise<void> {
    const { folder, env, adapt } = this.place
    const script = adapt(commands).replace(/petstore-2027-01-31-\d+\.\w+/, [...this.backups.keys()][0] ?? '')
    const play = async (words: string) => {
      if (/\bstop petstore/.test(words))
        await Promise.all(this.instances.splice(0).map(({ process: child }) => stop(child)))
      else if (/\bstart petstore/.test(words)) await this.start()
      else throw new Error(`The drill does not know what to do: ${words}`)
    }
    return runAsOperator(script, { folder, env, played: ['systemctl', 'docker'], play })
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
    const { backups } = site
    await site.follow(restore)
    assert.deepEqual(site.backups, backups, 'a restore changes no backup')
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
  [...['pg_dump', 'pg_restore', 'postgres'].map((program) => join(PROGRAMS, program)), '/usr/bin/curl'],
  ['postgresql-15', 'curl'],
)
process.env['PG_BIN'] = PROGRAMS
await conduct({ creates: 1000 }, async (terms) => {
  let held = true
  for (const [name, engine] of Object.entries(ENGINES)) held = (await onEngine(name, engine, terms)) && held
  return held
})

// npm run drill disk-full: the disk under a SQLite database fills up under load and is freed again, several times (as
// root). Fails if a create gets anything but 201 or 503, a list fails while the disk is full, an acknowledged animal is
// lost or doubled, /readyz does not say that the disk is full, creates do not succeed again by themselves, or a restart on the full disk ends or loses any. --rounds and --seed take a number; --plant loses an
// animal in each round, and then the drill must fail.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createKey, launchInstance, startInstance } from '../../test/harness/programs/instance.ts'
import { hasEnded, killAll, run, stop } from '../../test/harness/programs/processes.ts'
import { say } from '../../test/harness/say.ts'
import { until } from '../../test/harness/until.ts'
import { Clients } from '../../test/harness/failures/clients.ts'
import { conduct } from './conduct.ts'
import { loseNewest } from '../../test/harness/failures/planted-loss.ts'
import { summary } from './report.ts'
import { compare, isWhole, stopAndAudit } from '../../test/harness/failures/verdict.ts'

const CLIENTS = 4
const DISK_MEGABYTES = 24
const PATIENCE_MS = 120_000
const REFUSED = '503 service_unavailable'

await conduct({ rounds: 5 }, async ({ folder, random, plant, counts: { rounds } }) => {
  const disk = join(folder, 'disk')
  mkdirSync(disk)
  run('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MEGABYTES}m`, 'tmpfs', disk])
  try {
    const database = `sqlite:${join(disk, 'petstore.db')}`
    const instance = await startInstance(database, join(folder, 'instance.log'))
    const { url } = instance
    const key = await createKey(database)
    const clients = new Clients(url, key, { count: CLIENTS, patienceMs: PATIENCE_MS, random })
    const refused = () => clients.setbacks.filter(({ kind }) => kind === REFUSED).length
    let lists = 0
    let said = 0
    for (let round = 1; round <= rounds; round += 1) {
      await clients.nextCreate()
      say(`The disk is full, ${round} of ${rounds}`)
      const before = refused()
      fill(join(disk, 'filler'))
      // SQLite first reuses the space that its write-ahead log already occupies.
      await until(() => refused() > before + CLIENTS * 3, 'creates are refused', 120_000)
      const listed = await fetch(`${url}/v1/pets`, { headers: { Authorization: `Bearer ${key}` } })
      if (listed.ok) lists += 1
      if ((await (await fetch(`${url}/readyz`)).text()).includes('The disk of the database is full.')) said += 1
      rmSync(join(disk, 'filler'))
      if (plant) await loseNewest(database)
    }
    await clients.nextCreate()
    // The next create may be the one that shows that there is room; without any, /readyz finds out itself.
    const ready = await fetch(`${url}/readyz`)
    const audit = await stopAndAudit(url, key, clients)
    say('A restart on the full disk')
    await stop(instance.process)
    fill(join(disk, 'filler'))
    const restarted = launchInstance(database, join(folder, 'restarted.log'), instance.port)
    await until(async () => (await fetch(`${url}/livez`)).ok, 'it is live')
    rmSync(join(disk, 'filler'))
    await until(async () => (await fetch(`${url}/readyz`)).ok, 'it is ready')
    const { lost, doubled } = await compare(url, key, clients.acknowledged)
    const survived = !hasEnded(restarted) && lost.length === 0 && doubled.length === 0
    process.stdout.write(
      `full ${rounds} times, ${CLIENTS} clients\n${summary(audit)}lists while full     ${lists} of ${rounds}\n/readyz says so      ${said} of ${rounds}, then answers ${ready.status}\nrestart while full   ${survived ? 'waited, then served all' : 'failed'}\n`,
    )
    return (
      isWhole(audit) &&
      survived &&
      lists === rounds &&
      said === rounds &&
      ready.ok &&
      refused() === clients.setbacks.length
    )
  } finally {
    await killAll()
    run('umount', [disk])
  }
})

function fill(path: string): void {
  const megabyte = Buffer.alloc(1024 * 1024)
  for (const size of [megabyte.length, 4096]) {
    try {
      for (;;) writeFileSync(path, megabyte.subarray(0, size), { flag: 'a' })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    }
  }
}

// npm run drill upgrade: replaces an older program by this one and back, under traffic of clients that never retry: two instances
// behind HAProxy on PostgreSQL, one after the other, once as a role that owns no table, and one on an inherited socket on SQLite. Fails like the drill drain. --from names the
// commit of the older program, from 1.0.0 on, --restarts and --seed take a number; --plant kills the instances, and then the drill must fail.
import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { askPostgres } from '../../test/harness/databases/ask-postgres.ts'
import { MAIN } from '../../test/harness/programs/instance.ts'
import { startPostgres } from '../../test/harness/databases/postgres-server.ts'
import { killAll } from '../../test/harness/programs/processes.ts'
import { say } from '../../test/harness/say.ts'
import { conduct, type Terms } from './conduct.ts'
import { requirePrograms } from './debian.ts'
import { CHECKS, startLoadBalancer } from './load-balancer.ts'
import { HAPROXY } from '../../test/harness/deployment/proxy-servers.ts'
import { holds, restartAlone } from '../../test/harness/failures/restart-alone.ts'
import { restartBehind } from './restarts.ts'
import { makeServingRole } from './serving-role.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** HAProxy checks health every second, so it needs a moment to use an instance again. */
const SETTLES_MS = 2500

const at = process.argv.indexOf('--from')
const from = at === -1 ? undefined : process.argv.splice(at, 2)[1]

async function drill({ folder, seed, plant, counts: { restarts } }: Terms<'restarts'>): Promise<boolean> {
  if (from === undefined) throw new Error('Name the older program: --from COMMIT')
  const mains = [extract(from, join(folder, 'older')), MAIN]
  const plan = { restarts, drainSeconds: 5, signal: plant ? 'SIGKILL' : 'SIGTERM', clients: 8, seed, mains } as const
  const server = await startPostgres()
  const behind = (name: string, databases: { database: string; owner?: string }) =>
    restartBehind((...set) => startLoadBalancer(...set, CHECKS.patient), SETTLES_MS, {
      ...plan,
      ...databases,
      folder: emptyFolder(folder, name),
    })
  const scenes = {
    'two instances on PostgreSQL behind HAProxy': () => behind('behind', { database: server.url }),
    'the same as a role that owns no table': async () => {
      await askPostgres(server.url, 'CREATE DATABASE shop')
      const owner = server.url.replace(/postgres$/, 'shop')
      return behind('roles', { owner, database: await makeServingRole(owner) })
    },
    'one instance on SQLite, inherited socket': () => restartAlone({ ...plan, folder: emptyFolder(folder, 'alone') }),
  }
  let held = true
  for (const [name, run] of Object.entries(scenes)) {
    say(`${name}: ${restarts} restarts, ${from} and this program in turn`)
    const outcome = await run()
    await killAll()
    const { answered, broken, lost, doubled, slowestMs } = outcome
    process.stdout.write(
      `${name}: ${restarts} restarts, ${answered} answered, ${broken.length} broken, ${lost.length} lost, ${doubled.length} doubled, slowest ${Math.round(slowestMs)} ms\n`,
    )
    for (const what of new Set(broken)) process.stdout.write(`  broken: ${what}\n`)
    held &&= holds(outcome)
  }
  await server.end()
  return held
}

/** Writes the files of a commit into a folder, with the packages of this checkout; returns its entry point. */
function extract(commit: string, into: string): string {
  mkdirSync(into)
  const files = execFileSync('git', ['archive', commit, 'src', 'package.json', 'openapi.json'], {
    cwd: ROOT,
    maxBuffer: 2 ** 28,
  })
  execFileSync('tar', ['-x', '-C', into], { input: files })
  symlinkSync(join(ROOT, 'node_modules'), join(into, 'node_modules'))
  return join(into, 'src/main.ts')
}

function emptyFolder(folder: string, name: string): string {
  const path = join(folder, name)
  mkdirSync(path)
  return path
}

requirePrograms([HAPROXY], ['haproxy'])
await conduct({ restarts: 8 }, drill)

// npm run drill proxies: runs the proxies of deploy/ in front of two instances, and checks bodies that are refused before they
// have arrived, kept-alive connections, forwarded addresses, lost answers and lost instances. Exits with 1 if a check fails.
// --rounds takes a number: each round sends one request of every kind and size. --plant lets the instances trust no proxy, and
// then the drill must fail.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createKey, type Instance, startInstance } from '../../test/harness/programs/instance.ts'
import { killAll, killHard } from '../../test/harness/programs/processes.ts'
import { conduct, type Terms } from './conduct.ts'
import { requirePrograms } from './debian.ts'
import {
  earlyAnswers,
  forwardedAddress,
  type Found,
  keepAlive,
  lostInstances,
  noRepeats,
  type Scene,
} from './proxy-checks.ts'
import { PACKAGES, PROGRAMS, PROXIES, type StartProxy } from '../../test/harness/deployment/proxy-servers.ts'

const CHECKS: Record<string, (scene: Scene, rounds: number) => Promise<Found>> = {
  '600 KB bodies': (scene, rounds) => earlyAnswers(scene, 600_000, rounds),
  '5 MB bodies': (scene, rounds) => earlyAnswers(scene, 5_000_000, rounds),
  'kept connections': keepAlive,
  'forwarded address': forwardedAddress,
  'no repeats': noRepeats,
  'lost instances': (scene) => lostInstances(scene, (instance) => killHard(instance.process)),
}

async function startScene(folder: string, startProxy: StartProxy, trusted: string): Promise<Scene> {
  const database = `sqlite:${join(folder, 'petstore.db')}`
  const key = await createKey(database)
  const logs = ['1.log', '2.log'].map((name) => join(folder, name))
  const env = { PETSTORE_TRUST_PROXY: trusted, PETSTORE_LOG_LEVEL: 'info' }
  const instances: [Instance, Instance] = [
    await startInstance(database, logs[0]!, { env }),
    await startInstance(database, logs[1]!, { env }),
  ]
  return { url: await startProxy(folder, [instances[0].port, instances[1].port]), key, instances, logs }
}

async function drill({ folder, plant, counts: { rounds } }: Terms<'rounds'>): Promise<boolean> {
  let held = true
  for (const [name, startProxy] of Object.entries(PROXIES)) {
    const own = join(folder, name)
    mkdirSync(own)
    const scene = await startScene(own, startProxy, plant ? '192.0.2.1' : '127.0.0.1')
    for (const [what, check] of Object.entries(CHECKS)) {
      const { figures, violations } = await check(scene, rounds)
      process.stdout.write(`${name.padEnd(8)} ${what.padEnd(18)} ${figures}\n`)
      for (const [violation, all] of Map.groupBy(violations, (one) => one))
        process.stdout.write(`  violated: ${all.length} × ${violation}\n`)
      held &&= violations.length === 0
    }
    await killAll()
  }
  return held
}

requirePrograms(Object.values(PROGRAMS), PACKAGES)
await conduct({ rounds: 10 }, drill)

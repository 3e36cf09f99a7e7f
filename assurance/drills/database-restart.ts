// npm run drill database-restart: PostgreSQL ends and starts again beside 200 clients that come back at once, while the instance gets a tenth of
// a CPU, as on a machine where everything restarts. Fails unless the instance is ready again within 3 s each time, and if an acknowledged
// animal is lost or doubled. --restarts, --clients, --percent (of a CPU) and --seed take a number; --plant loses an animal, and then the drill
// must fail.
import type { ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { createKey, startInstance } from '../../test/harness/programs/instance.ts'
import { startPostgres } from '../../test/harness/databases/postgres-server.ts'
import { until } from '../../test/harness/until.ts'
import { conduct, type Terms } from './conduct.ts'
import { loseNewest } from '../../test/harness/failures/planted-loss.ts'
import { Traffic } from '../../test/harness/failures/traffic.ts'
import { compare } from '../../test/harness/failures/verdict.ts'

const READY_WITHIN_MS = 3000
const CALM_MS = 3000
const AWAY_MS = 2000

/** How long a process runs and then stands still, together. */
const PERIOD_MS = 100

async function drill(terms: Terms<'restarts' | 'clients' | 'percent'>): Promise<boolean> {
  const { folder, seed, random, plant, counts } = terms
  const server = await startPostgres()
  const { url, process: child } = await startInstance(server.url, join(folder, 'instance.log'))
  const key = await createKey(server.url)
  const restore = slowDown(child, counts.percent)
  const traffic = new Traffic(url, key, counts.clients, seed, 0)
  let slowest = 0
  for (let restart = 1; restart <= counts.restarts; restart += 1) {
    await setTimeout(CALM_MS)
    await server.stop()
    await setTimeout(AWAY_MS + 1000 * random())
    await server.start()
    const began = performance.now()
    await until(async () => (await fetch(`${url}/readyz`)).ok, 'the instance is ready')
    const took = performance.now() - began
    process.stdout.write(`restart ${restart}: ready after ${Math.round(took)} ms\n`)
    slowest = Math.max(slowest, took)
  }
  await traffic.stop()
  restore()
  if (plant) await loseNewest(server.url)
  const { lost, doubled } = await compare(url, key, traffic.acknowledged)
  const { answered, broken, acknowledged } = traffic
  process.stdout.write(
    `${counts.clients} clients: ${answered} answered, ${broken.length} refused or broken, ${acknowledged.length} acknowledged, ${lost.length} lost, ${doubled.length} doubled\n`,
  )
  await server.end()
  return slowest < READY_WITHIN_MS && acknowledged.length > 0 && lost.length === 0 && doubled.length === 0
}

/** Lets a process run for a share of the time only, until the function that it returns is called. */
function slowDown(child: ChildProcess, percent: number): () => void {
  let pause: NodeJS.Timeout | undefined
  const period = setInterval(() => {
    child.kill('SIGCONT')
    pause = globalThis.setTimeout(() => child.kill('SIGSTOP'), (PERIOD_MS * percent) / 100)
  }, PERIOD_MS)
  return () => {
    clearInterval(period)
    clearTimeout(pause)
    child.kill('SIGCONT')
  }
}

await conduct({ restarts: 5, clients: 200, percent: 10 }, drill)

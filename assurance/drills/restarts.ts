// Restarts two instances behind a proxy under traffic.
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { deployed } from '../../test/harness/deployment/deployed.ts'
import {
  createKey,
  type Instance,
  type InstanceOptions,
  launchInstance,
  MAIN,
  settings,
  startInstance,
} from '../../test/harness/programs/instance.ts'
import { collect, start } from '../../test/harness/programs/processes.ts'
import { type Outcome, type Restarts, underTraffic } from '../../test/harness/failures/restart-alone.ts'
import { runAsOperator } from './operator-shell.ts'

/** Restarts two instances behind a load balancer in turn; `settleMs` is how long the balancer needs to use one again. */
export async function restartBehind(
  balancer: (folder: string, ports: number[]) => Promise<string>,
  settleMs: number,
  plan: Restarts,
): Promise<Outcome> {
  const { folder, restarts, drainSeconds, signal, mains = [MAIN] } = plan
  const database = plan.database ?? `sqlite:${join(folder, 'petstore.db')}`
  const [main = MAIN] = mains
  const env = { PETSTORE_DRAIN_SECONDS: String(drainSeconds) }
  const logs = [1, 2].map((number) => join(folder, `instance-${number}.log`))
  const startNext = async (which: number, options: InstanceOptions): Promise<Instance> => {
    if (plan.owner !== undefined) await migrate(plan.owner, options.main!)
    return startInstance(database, logs[which]!, { env, ...options })
  }
  const instances = [await startNext(0, { main }), await startNext(1, { main })]
  const url = await balancer(
    folder,
    instances.map(({ port }) => port),
  )
  return underTraffic(url, await createKey(database, main), plan, async () => {
    await setTimeout(settleMs)
    for (let restart = 0; restart < restarts; restart += 1) {
      const which = restart % 2
      const { process: child, port } = instances[which]!
      child.kill(signal)
      await once(child, 'exit')
      const next = mains[(Math.floor(restart / 2) + 1) % mains.length]!
      instances[which] = await startNext(which, { port, main: next })
      await setTimeout(settleMs)
    }
  })
}

/**
 * Restarts two instances behind a proxy by the commands of deploy/README.md as they stand there, which take the next step when they
 * find that it is time.
 */
export async function restartAsDocumented(
  proxy: (folder: string, ports: number[]) => Promise<string>,
  plan: Restarts,
): Promise<Outcome> {
  const { folder, restarts, drainSeconds, signal } = plan
  const [, block] = /^```sh\n((?:(?!```)[^])*systemctl restart petstore@[^]*?)^```$/m.exec(deployed('README.md')) ?? []
  if (block === undefined) throw new Error('deploy/README.md has no block of commands that restarts two instances')
  const database = `sqlite:${join(folder, 'petstore.db')}`
  const env = { PETSTORE_DRAIN_SECONDS: String(drainSeconds) }
  const logs = [1, 2].map((number) => join(folder, `instance-${number}.log`))
  const instances = [await startInstance(database, logs[0]!, { env }), await startInstance(database, logs[1]!, { env })]
  const ports = instances.map(({ port }) => port)
  const running = instances.map((instance) => instance.process)
  const play = async (words: string) => {
    const which = ports.indexOf(Number(/^restart petstore@(\d+)$/.exec(words)?.[1]))
    const child = running[which]!
    child.kill(signal)
    await once(child, 'exit')
    // Like systemd, which does not wait until the program listens.
    running[which] = launchInstance(database, logs[which]!, ports[which]!, env)
  }
  const script = block.replaceAll(/\b808([12])\b/g, (_port, nth: string) => String(ports[Number(nth) - 1]))
  const url = await proxy(folder, ports)
  return underTraffic(url, await createKey(database), plan, async () => {
    for (let restart = 0; restart < restarts; restart += ports.length)
      await runAsOperator(script, { folder, played: ['systemctl'], play })
  })
}

/** Migrates with a program as the owner of the tables, while clients are at work. */
async function migrate(owner: string, main: string): Promise<void> {
  const { code, stderr } = await collect(start(process.execPath, [main, 'migrate'], { env: settings(owner) }))
  if (code !== 0) throw new Error(`migrate ended with ${code}: ${stderr}`)
}

// Restarts instances under traffic, and counts the requests that fail.
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { createKey, startInstance } from '../harness/instance.ts'
import { HeldInstance } from './held-instance.ts'
import { Traffic } from './traffic.ts'
import { compare } from './verdict.ts'

export interface Restarts {
  /** The folder for databases and logs. */
  folder: string
  restarts: number
  drainSeconds: number
  /** SIGTERM, or SIGKILL as an injected fault that the drill must detect. */
  signal: 'SIGTERM' | 'SIGKILL'
  clients: number
  seed: number
}

export interface Outcome {
  restarts: number
  answered: number
  broken: string[]
  lost: string[]
  doubled: string[]
  slowestMs: number
}

/** Restarts two instances behind a load balancer in turn; `settleMs` is how long the balancer needs to use one again. */
export async function restartBehind(
  balancer: (folder: string, ports: number[]) => Promise<string>,
  settleMs: number,
  plan: Restarts,
): Promise<Outcome> {
  const { folder, restarts, drainSeconds, signal } = plan
  const database = `sqlite:${join(folder, 'petstore.db')}`
  const env = { PETSTORE_DRAIN_SECONDS: String(drainSeconds) }
  const logs = [1, 2].map((number) => join(folder, `instance-${number}.log`))
  const instances = [await startInstance(database, logs[0]!, { env }), await startInstance(database, logs[1]!, { env })]
  const url = await balancer(
    folder,
    instances.map(({ port }) => port),
  )
  return underTraffic(url, await createKey(database), plan, async () => {
    await setTimeout(settleMs)
    for (let restart = 0; restart < restarts; restart += 1) {
      const which = restart % 2
      const { process: child, port } = instances[which]!
      child.kill(signal)
      await once(child, 'exit')
      instances[which] = await startInstance(database, logs[which]!, { env, port })
      await setTimeout(settleMs)
    }
  })
}

/** How long a single instance serves between two restarts. */
const CALM_MS = 500

/** Restarts a single instance on a listening socket that it inherits, perhaps behind a proxy. */
export async function restartAlone(
  plan: Restarts,
  proxy?: (folder: string, ports: number[]) => Promise<string>,
): Promise<Outcome> {
  const { folder, restarts, drainSeconds, signal } = plan
  const database = `sqlite:${join(folder, 'petstore.db')}`
  await using instance = await HeldInstance.start(database, join(folder, 'instance.log'), {
    PETSTORE_DRAIN_SECONDS: String(drainSeconds),
  })
  const url = (await proxy?.(folder, [Number(new URL(instance.url).port)])) ?? instance.url
  return await underTraffic(url, await createKey(database), plan, async () => {
    for (let restart = 0; restart < restarts; restart += 1) {
      await setTimeout(CALM_MS)
      await instance.restart(signal)
    }
  })
}

async function underTraffic(
  url: string,
  key: string,
  { restarts, clients, seed }: Restarts,
  work: () => Promise<void>,
): Promise<Outcome> {
  const traffic = new Traffic(url, key, clients, seed)
  try {
    await work()
  } finally {
    await traffic.stop()
  }
  const { answered, broken, slowestMs } = traffic
  const { lost, doubled } = await compare(url, key, traffic.acknowledged)
  return { restarts, answered, broken, lost, doubled, slowestMs }
}

export function holds({ answered, broken, lost, doubled }: Outcome): boolean {
  return answered > 0 && broken.length === 0 && lost.length === 0 && doubled.length === 0
}

// Restarts an instance under traffic, and counts the requests that fail.
import { rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { HeldInstance } from '../programs/held-instance.ts'
import { createKey, MAIN } from '../programs/instance.ts'
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
  /** Default: a file of SQLite. */
  database?: string
  /** The address of the database for the role that owns the tables, if the service's does not: it migrates before a program starts. */
  owner?: string
  /** The programs that take turns: every instance is restarted with the next one. Default: the program of this checkout. */
  mains?: readonly string[]
}

export interface Outcome {
  restarts: number
  answered: number
  broken: string[]
  lost: string[]
  doubled: string[]
  slowestMs: number
}

/** How long a single instance serves between two restarts. */
const CALM_MS = 500

/** Restarts a single instance on a listening socket that it inherits, perhaps behind a proxy. */
export async function restartAlone(
  plan: Restarts,
  proxy?: (folder: string, ports: number[]) => Promise<string>,
): Promise<Outcome> {
  const { folder, restarts, drainSeconds, signal, mains = [MAIN] } = plan
  const database = `sqlite:${join(folder, 'petstore.db')}`
  const env = { PETSTORE_DRAIN_SECONDS: String(drainSeconds) }
  const program = join(folder, 'program.ts')
  symlinkSync(mains[0]!, program)
  await using instance = await HeldInstance.start(database, join(folder, 'instance.log'), env, [program])
  const url = (await proxy?.(folder, [Number(new URL(instance.url).port)])) ?? instance.url
  return await underTraffic(url, await createKey(database, mains[0]), plan, async () => {
    for (let restart = 0; restart < restarts; restart += 1) {
      await setTimeout(CALM_MS)
      rmSync(program)
      symlinkSync(mains[(restart + 1) % mains.length]!, program)
      await instance.restart(signal)
    }
  })
}

/** Does the work while clients are at theirs, and compares their answers with what is stored. */
export async function underTraffic(
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

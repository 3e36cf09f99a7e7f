// npm run drill drain: restarts instances behind the proxies of deploy/, two of them by the commands of deploy/README.md as they stand there,
// and alone, under traffic of clients that never retry.
// Fails if a request fails, or an acknowledged animal is lost or doubled. The drain time is the one that deploy/ sets.
// --restarts and --seed take a number; --plant kills the instances instead of stopping them, and then the drill must fail.
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { killAll } from '../../test/harness/programs/processes.ts'
import { say } from '../../test/harness/say.ts'
import { conduct, type Terms } from './conduct.ts'
import { requirePrograms } from './debian.ts'
import { PACKAGES, PROGRAMS, PROXIES } from '../../test/harness/deployment/proxy-servers.ts'
import { holds, type Outcome, restartAlone, type Restarts } from '../../test/harness/failures/restart-alone.ts'
import { restartAsDocumented } from './restarts.ts'

const CLIENTS = 8

/** Returns the drain time, in seconds, that a file in deploy/ sets. */
function drainOf(file: string): number {
  const [, seconds] = /PETSTORE_DRAIN_SECONDS(?:=|: )(\d+)/.exec(
    readFileSync(new URL(`../../deploy/${file}`, import.meta.url), 'utf8'),
  )!
  return Number(seconds)
}

const SCENES: Record<string, { drainSeconds: number; run: (plan: Restarts) => Promise<Outcome> }> = {
  ...Object.fromEntries(
    Object.entries(PROXIES).map(([name, startProxy]) => [
      `two instances behind ${name}`,
      { drainSeconds: drainOf('petstore.service'), run: (plan: Restarts) => restartAsDocumented(startProxy, plan) },
    ]),
  ),
  'one instance, inherited socket': { drainSeconds: drainOf('petstore.service'), run: (plan) => restartAlone(plan) },
  ...Object.fromEntries(
    Object.entries(PROXIES).map(([name, startProxy]) => [
      `the same behind ${name}`,
      { drainSeconds: drainOf('petstore.service'), run: (plan: Restarts) => restartAlone(plan, startProxy) },
    ]),
  ),
}

async function drill({ folder, seed, plant, counts: { restarts } }: Terms<'restarts'>): Promise<boolean> {
  let held = true
  for (const [index, [name, { drainSeconds, run }]] of Object.entries(SCENES).entries()) {
    const own = join(folder, String(index))
    mkdirSync(own)
    const signal = plant ? 'SIGKILL' : 'SIGTERM'
    say(`${name}: ${restarts} restarts by ${signal}, each drained for ${drainSeconds} s`)
    const outcome = await run({ folder: own, restarts, drainSeconds, signal, clients: CLIENTS, seed })
    await killAll()
    print(name, outcome)
    held &&= holds(outcome)
  }
  return held
}

function print(name: string, { restarts, answered, broken, lost, doubled, slowestMs }: Outcome): void {
  const figures = [
    `${restarts} restarts`,
    `${answered} answered`,
    `${broken.length} broken`,
    `${lost.length} lost`,
    `${doubled.length} doubled`,
  ]
  process.stdout.write(`${name.padEnd(32)} ${figures.join(', ')}, slowest ${Math.round(slowestMs)} ms\n`)
  for (const [what, all] of Map.groupBy(broken, (one) => one))
    process.stdout.write(`  broken: ${all.length} × ${what}\n`)
}

requirePrograms([...Object.values(PROGRAMS), '/usr/bin/curl'], [...PACKAGES, 'curl'])
await conduct({ restarts: 30 }, drill)

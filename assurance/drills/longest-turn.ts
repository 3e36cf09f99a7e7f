// npm run drill longest-turn: sends each shape of request that is small and asks for much work, and measures the longest turn of the
// event loop, on both engines. Fails if one takes 50 ms of the processor or more in each of several runs.
// --runs and --seed take a number; with --plant a turn may take 1 ms, and then the drill must fail.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readConfig } from '../../src/config.ts'
import { CATEGORIES_MOST } from '../../src/contract/limits.ts'
import { openStore } from '../../src/store/opening/open-store.ts'
import { petstore, startInstance } from '../../test/harness/programs/instance.ts'
import { until } from '../../test/harness/until.ts'
import { conduct } from './conduct.ts'
import { onEachEngine } from './each-engine.ts'
import { EMAIL, LONG_SIGN, PASSWORD, shapesOf } from './heavy-shapes.ts'

const MOST_MS = 50

await conduct({ runs: 3 }, async ({ folder: all, plant, counts: { runs } }) =>
  onEachEngine(all, `${runs} runs of each shape`, async ({ database, folder }) => {
    petstore(database, ['account', 'create', EMAIL, '--password-stdin'], PASSWORD)
    const words = ['key', 'create', '--account', EMAIL, '--name', 'drill', '--json']
    const { key } = JSON.parse(petstore(database, words)) as { key: string }
    await fill(database)
    const file = join(folder, 'turns.json')
    const turns = new URL('measured-turns.ts', import.meta.url).href
    const instance = await startInstance(database, join(folder, 'log'), {
      env: { NODE_OPTIONS: `--import=${turns}`, TURNS: file },
    })
    let measurement = 0
    /** Resolves with the longest turn since the last call. */
    const measure = async (): Promise<{ cpuMs: number; wallMs: number }> => {
      measurement += 1
      instance.process.kill('SIGUSR2')
      let turn = { measurement: 0, cpuMs: 0, wallMs: 0 }
      await until(() => {
        turn = JSON.parse(readFileSync(file, 'utf8')) as typeof turn
        return turn.measurement === measurement
      }, 'the turns are written')
      return turn
    }
    const slow: string[] = []
    process.stdout.write(`${'shape'.padEnd(58)} status  CPU ms  wall ms\n`)
    for (const [name, send] of await shapesOf(instance.url, key)) {
      let [cpuMs, wallMs, status] = [Infinity, Infinity, 0]
      for (let run = 0; run < runs; run += 1) {
        await measure()
        status = await send().catch(() => 0)
        const turn = await measure()
        cpuMs = Math.min(cpuMs, turn.cpuMs)
        wallMs = Math.min(wallMs, turn.wallMs)
      }
      const columns = [
        name.padEnd(58),
        String(status).padStart(6),
        cpuMs.toFixed(1).padStart(7),
        wallMs.toFixed(1).padStart(8),
      ]
      process.stdout.write(`${columns.join(' ')}\n`)
      if (cpuMs >= (plant ? 1 : MOST_MS)) slow.push(name)
    }
    process.stdout.write(`${slow.length} shapes take ${MOST_MS} ms or more in one turn\n`)
    return slow.length === 0
  }),
)

/** Names as many categories as there can be, as long as an earlier release took them, and adds animals with long names. */
async function fill(database: string): Promise<void> {
  const store = await openStore(readConfig({ database }, {}).database)
  for (let number = 1; number <= CATEGORIES_MOST; number += 1) {
    const name = `${LONG_SIGN.repeat(96)}${number}`
    await store.categories.save({ number: BigInt(number), name }, undefined, {
      at: Date.now(),
      accountId: 'acct_drill',
      action: 'category.added',
      via: 'command',
      subject: name,
    })
  }
  const pets = Array.from({ length: 2000 }, (_, index) => ({
    name: `${LONG_SIGN.repeat(250)}${index}`,
    categoryId: BigInt(1 + (index % CATEGORIES_MOST)),
    status: 'available' as const,
  }))
  await store.pets.createMany(pets)
  await store.close()
}

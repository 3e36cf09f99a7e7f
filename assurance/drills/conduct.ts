// Runs a drill: parses its options, makes a folder for databases and logs, sets a time limit, and kills all processes at the end.
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { killAll } from '../../test/harness/programs/processes.ts'
import { type Random, seeded } from '../../test/harness/random.ts'
import { say } from '../../test/harness/say.ts'

const LIMIT_MINUTES = 20

export interface Terms<Count extends string> {
  /** For databases and logs; kept if the drill fails. */
  folder: string
  seed: number
  random: Random
  /** Whether to inject the fault that the drill must detect. */
  plant: boolean
  counts: Record<Count, number>
}

/** Runs the drill with `--seed N`, `--plant` and an option for each count. Exits with 1 unless the drill returns true. */
export async function conduct<Count extends string>(
  defaults: Record<Count, number>,
  drill: (terms: Terms<Count>) => Promise<boolean>,
): Promise<never> {
  const names = Object.keys(defaults) as Count[]
  const flags = Object.fromEntries(
    names.map((name) => [name, { type: 'string', default: String(defaults[name]) }] as const),
  )
  const { values } = parseArgs({
    options: { ...flags, seed: { type: 'string', default: '1' }, plant: { type: 'boolean', default: false } },
  })
  const { plant, ...given } = values
  const { seed, ...rest } = Object.fromEntries(
    Object.entries<string>(given).map(([flag, value]) => [flag, wholeNumber(flag, value)]),
  ) as { seed: number }
  const counts = rest as Record<Count, number>
  const folder = mkdtempSync(join(tmpdir(), 'petstore-drill-'))
  // PostgreSQL's user must be able to reach its folder inside this one.
  chmodSync(folder, 0o711)
  setTimeout(() => {
    say(`The drill did not end within ${LIMIT_MINUTES} minutes`)
    process.exit(1)
  }, LIMIT_MINUTES * 60_000).unref()
  process.stdout.write(`seed ${seed}, Node.js ${process.version}${plant ? ', with a planted fault' : ''}\n`)
  let held = false
  try {
    held = await drill({ folder, seed, random: seeded(seed), plant, counts })
  } finally {
    await killAll()
    if (held) rmSync(folder, { recursive: true })
    else say(`The promise does not hold. The logs are kept in ${folder}`)
  }
  // Exits explicitly: sockets of clients that were cut off may keep the process alive.
  process.exit(held ? 0 : 1)
}

function wholeNumber(flag: string, value: string): number {
  if (!/^\d{1,9}$/.test(value)) throw new Error(`--${flag} takes a whole number, got ${value}`)
  return Number(value)
}

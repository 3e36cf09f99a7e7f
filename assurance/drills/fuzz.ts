// npm run drill fuzz: random bytes and changed requests, also for pages and forms, over raw sockets, on both engines.
// Fails at a 5xx, an error that is neither an Error body nor an error page, an error in the log, a connection left
// open, or a crash.
// --requests and --seed take a number; --plant sends requests that staging answers with 503, and then the drill must fail.
import { conduct } from './conduct.ts'
import { onEachEngine } from './each-engine.ts'
import { fuzz } from './fuzzing.ts'

const SHOWN = 10

await conduct({ requests: 3000 }, async ({ folder: all, random, plant, counts: { requests } }) =>
  onEachEngine(all, `${requests} requests`, async ({ name, database, folder }) => {
    const { statuses, violations } = await fuzz({ folder, database, requests, random, plant })
    const figures = [...statuses]
      .toSorted(([a], [b]) => a - b)
      .map(([status, count]) => `${count} × ${status === 0 ? 'closed' : status}`)
    process.stdout.write(`${name}: ${requests} requests, ${violations.length} violations; ${figures.join(', ')}\n`)
    for (const violation of violations.slice(0, SHOWN)) process.stdout.write(`  ${violation}\n`)
    return violations.length === 0
  }),
)

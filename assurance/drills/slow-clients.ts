// npm run drill slow-clients: slow headers, slow bodies and clients that never read, with honest clients beside them.
// Fails if an honest request fails, or if connections with slow headers or bodies are still open after the server's timeouts.
// --connections, --seconds and --seed take a number; with --plant the slow clients may take every connection, and then the
// drill must fail.
import { ENGINES } from '../../test/harness/databases/engines.ts'
import { conduct } from './conduct.ts'
import { serveBesideSlowClients } from '../../test/harness/failures/slow.ts'

await conduct({ connections: 600, seconds: 50 }, async ({ folder, seed, plant, counts: { connections, seconds } }) => {
  await using database = await ENGINES[0]!.newEmptyDatabase()
  const served = await serveBesideSlowClients({ folder, database: database.url, connections, seconds, seed, plant })
  const { answered, broken, slowestAtFirstMs, slowestMs, ended, megabytes } = served
  process.stdout.write(
    `${connections} slow connections, ${ended} of them ended by the server within ${seconds} s; ${megabytes} MB resident\n`,
  )
  process.stdout.write(
    `${answered} honest requests answered, ${broken.length} broken, the slowest took ${Math.round(slowestAtFirstMs)} ms at first, ${Math.round(slowestMs)} ms later\n`,
  )
  for (const [what, all] of Map.groupBy(broken, (one) => one))
    process.stdout.write(`  broken: ${all.length} × ${what}\n`)
  // A client that never reads does not notice that the server has ended its connection, so it is not counted.
  const toEnd = Math.floor((connections * 2) / 3)
  return answered > 0 && broken.length === 0 && ended >= toEnd
})

// npm run drill overload: sends requests on far more connections than the peak rate needs.
// Fails if a list gets anything but 200, a create anything but 201 or 503 with Retry-After, /livez on a new connection an error,
// or if the instance does not recover. Throughput and latencies are printed but not judged: they depend on the machine.
// --connections, --seconds, --rounds and --seed take a number; --plant freezes the instance, and then the drill must fail.
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { ENGINES } from '../../test/harness/databases/engines.ts'
import { freePort } from '../../test/harness/connections/free-port.ts'
import { createKey, startInstance } from '../../test/harness/programs/instance.ts'
import { percentile } from '../../test/harness/percentiles.ts'
import { say } from '../../test/harness/say.ts'
import { conduct } from './conduct.ts'
import { crowd, type Pace } from './crowd.ts'
import { askLivez, type Livez, LIVEZ_WITHIN_MS } from './livez-asker.ts'

const PEAK_CONNECTIONS = 64
/** Below --max-connections, so that new ones beside them are not refused. */
const BUSY_CONNECTIONS = 800
/** Long enough for the connections of one crowd to close before the next crowd connects. */
const BETWEEN_CROWDS_MS = 300
const PET = '{"name":"Rex","categoryId":1}'

await conduct(
  { connections: 2000, seconds: 4, rounds: 3 },
  async ({ folder, plant, counts: { connections, seconds, rounds } }) => {
    await using database = await ENGINES[0]!.newEmptyDatabase()
    const adminPort = await freePort()
    const {
      port,
      url,
      process: child,
    } = await startInstance(database.url, join(folder, 'instance.log'), {
      env: { PETSTORE_ADMIN_PORT: String(adminPort) },
    })
    const key = `Host: localhost\r\nAuthorization: Bearer ${await createKey(database.url)}\r\n`
    const requests = {
      lists: `GET /v1/pets HTTP/1.1\r\n${key}\r\n`,
      creates: `POST /v1/pets HTTP/1.1\r\n${key}Content-Type: application/json\r\nContent-Length: ${PET.length}\r\n\r\n${PET}`,
    }
    let held = true
    for (let round = 1; round <= rounds; round += 1) {
      for (const [name, request] of Object.entries(requests)) {
        /** Asks for /livez on new connections while a crowd is busy. */
        const beside = async (count: number, asked: number) => {
          let asking: Promise<Livez> | undefined
          const begun = () => void (asking = askLivez({ port: asked, seconds }))
          const pace = await crowd({ port, request, seconds, connections: count, begun })
          say(`round ${round}, ${name}: ${described(count, pace)}`)
          const isServed = pace.perSecond > 0 && pace.failed === 0 && (name === 'creates' || pace.busy === 0)
          const isLive = isAnswered(await asking!)
          held &&= isServed && isLive
          await setTimeout(BETWEEN_CROWDS_MS)
        }
        await beside(PEAK_CONNECTIONS, port)
        if (plant) child.kill('SIGSTOP')
        await beside(connections, adminPort)
        await beside(BUSY_CONNECTIONS, port)
      }
    }
    const recovering = performance.now()
    const recovered = await fetch(`${url}/livez`, { signal: AbortSignal.timeout(LIVEZ_WITHIN_MS) }).then(
      ({ ok }) => ok,
      () => false,
    )
    say(
      `after the crowds: ${recovered ? 'served' : 'NOT served'} after ${Math.round(performance.now() - recovering)} ms`,
    )
    return held && recovered
  },
)

/** Says how long new connections took for /livez; returns whether all were answered. */
function isAnswered({ times, failures }: Livez): boolean {
  const [median, p99] = [0.5, 0.99].map((quantile) => Math.round(percentile(times, quantile)))
  say(`  /livez: ${times.length} answers, ${failures.length} failures, median ${median} ms, p99 ${p99} ms`)
  return times.length > 0 && failures.length === 0
}

function described(connections: number, { perSecond, p99Ms, refused, busy, failed }: Pace): string {
  return `${Math.round(perSecond)}/s on ${connections} connections, p99 ${Math.round(p99Ms)} ms, ${refused} refused connections, ${busy} answers 503, ${failed} failed`
}

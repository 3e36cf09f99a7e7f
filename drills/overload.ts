// npm run drill:overload: far more connections than an instance serves at its peak, beside bare node:http under the same.
// Fails if an accepted request gets anything but 200, /livez of the admin port an error, or the instance does not recover.
// What depends on the machine is printed, not judged: throughput and latencies.
// --connections, --seconds and --seed take a number; --plant freezes the instance, and then the drill must fail.
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { ENGINES } from '../test/engines.ts'
import { freePort } from '../test/free-port.ts'
import { conduct, say } from './conduct.ts'
import { crowd, type Pace, percentile } from './crowd.ts'
import { createKey, startInstance } from './instance.ts'
import { start, until } from './processes.ts'

const BARE = fileURLToPath(new URL('bare-http.ts', import.meta.url))
const PEAK_CONNECTIONS = 64
const ASK_LIVEZ_MS = 100
/** Far beyond the mark of 100 ms: what no busy machine explains. */
const LIVEZ_WITHIN_MS = 10_000

await conduct({ connections: 2000, seconds: 8 }, async ({ folder, plant, counts: { connections, seconds } }) => {
  await using database = await ENGINES[0]!.newDatabase()
  const adminPort = await freePort()
  const instance = await startInstance(database.url, join(folder, 'instance.log'), { env: { PETSTORE_ADMIN_PORT: String(adminPort) } })
  const request = `GET /v1/pets HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${createKey(database.url)}\r\n\r\n`
  const barePort = await freePort()
  start(process.execPath, [BARE, String(barePort)], { log: join(folder, 'bare.log') })
  await until('bare node:http answers', async () => (await fetch(`http://127.0.0.1:${barePort}/`)).ok)

  const paces: Record<string, { peak: Pace; crowded: Pace }> = {}
  let livez: Livez = { times: [], failures: [] }
  for (const [name, port] of [['bare node:http', barePort], ['petstore', instance.port]] as const) {
    say(`${name}: ${PEAK_CONNECTIONS} connections, then ${connections}`)
    const peak = await crowd(port, request, PEAK_CONNECTIONS, seconds)
    if (plant && name === 'petstore') instance.process.kill('SIGSTOP')
    const asking = name === 'petstore' ? askLivez(adminPort, seconds) : undefined
    paces[name] = { peak, crowded: await crowd(port, request, connections, seconds) }
    livez = (await asking) ?? livez
  }
  const recovering = performance.now()
  const recovered = await fetch(`http://127.0.0.1:${instance.port}/livez`, { signal: AbortSignal.timeout(LIVEZ_WITHIN_MS) }).then(({ ok }) => ok, () => false)
  const recoveredMs = performance.now() - recovering

  for (const [name, { peak, crowded }] of Object.entries(paces)) {
    const figures = [`${Math.round(peak.perSecond)}/s at ${PEAK_CONNECTIONS} connections`, `${Math.round(crowded.perSecond)}/s at ${connections}`]
    const share = (crowded.perSecond / peak.perSecond).toFixed(2)
    process.stdout.write(`${name}: ${figures.join(', ')} (${share}), p99 ${Math.round(crowded.p99Ms)} ms, ${crowded.refused} refused connections, ${crowded.failed} failed answers\n`)
  }
  const { times, failures } = livez
  process.stdout.write(`/livez of the admin port: ${times.length} answers, ${failures.length} failures, p99 ${Math.round(percentile(times, 0.99))} ms\n`)
  process.stdout.write(`after the crowd: ${recovered ? 'served' : 'NOT served'} after ${Math.round(recoveredMs)} ms\n`)
  const { crowded } = paces['petstore']!
  return crowded.perSecond > 0 && crowded.failed === 0 && times.length > 0 && failures.length === 0 && recovered
})

interface Livez {
  times: number[]
  failures: string[]
}

/** Asks on a new connection each time. */
async function askLivez(port: number, seconds: number): Promise<Livez> {
  const livez: Livez = { times: [], failures: [] }
  for (const end = performance.now() + seconds * 1000; performance.now() < end; ) {
    const asked = performance.now()
    try {
      const { ok, status } = await fetch(`http://127.0.0.1:${port}/livez`, { headers: { Connection: 'close' }, signal: AbortSignal.timeout(LIVEZ_WITHIN_MS) })
      if (ok) livez.times.push(performance.now() - asked)
      else livez.failures.push(String(status))
    } catch (error) {
      livez.failures.push(String(error))
    }
    await setTimeout(ASK_LIVEZ_MS)
  }
  return livez
}

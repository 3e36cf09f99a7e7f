// npm run drill overload: sends requests on far more connections than the peak rate needs, to an instance and to
// bare node:http.
// Fails if a list gets anything but 200, a create anything but 201 or 503 with Retry-After, /livez on a new connection an error,
// or if the instance does not recover. Throughput and latencies are printed but not judged: they depend on the machine.
// --connections, --seconds, --rounds and --seed take a number; --plant freezes the instance, and then the drill must fail.
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { ENGINES } from '../harness/engines.ts'
import { freePort } from '../harness/free-port.ts'
import { createKey, startInstance } from '../harness/instance.ts'
import { figure, percentile, spread } from '../harness/percentiles.ts'
import { cpuSeconds } from '../harness/process-tree.ts'
import { start } from '../harness/processes.ts'
import { say } from '../harness/say.ts'
import { until } from '../harness/until.ts'
import { conduct } from './conduct.ts'
import { crowd, type Pace } from './crowd.ts'
import { askLivez, type Livez, LIVEZ_WITHIN_MS } from './livez-asker.ts'

const BARE = fileURLToPath(new URL('bare-http.ts', import.meta.url))
const PEAK_CONNECTIONS = 64
/** Below --max-connections, so that new ones beside them are not refused. */
const BUSY_CONNECTIONS = 800
/** Long enough for the connections of one crowd to close before the next crowd connects. */
const BETWEEN_CROWDS_MS = 300
const PET = '{"name":"Rex","categoryId":1}'

interface Round {
  peak: Pace
  crowded: Pace
}

await conduct(
  { connections: 2000, seconds: 4, rounds: 3 },
  async ({ folder, plant, counts: { connections, seconds, rounds } }) => {
    await using database = await ENGINES[0]!.newEmptyDatabase()
    const adminPort = await freePort()
    const instance = await startInstance(database.url, join(folder, 'instance.log'), {
      env: { PETSTORE_ADMIN_PORT: String(adminPort) },
    })
    const key = `Host: localhost\r\nAuthorization: Bearer ${await createKey(database.url)}\r\n`
    const list = `GET /v1/pets HTTP/1.1\r\n${key}\r\n`
    const create = `POST /v1/pets HTTP/1.1\r\n${key}Content-Type: application/json\r\nContent-Length: ${PET.length}\r\n\r\n${PET}`
    const barePort = await freePort()
    const bare = start(process.execPath, [BARE, String(barePort)], { log: join(folder, 'bare.log') })
    await until(async () => (await fetch(`http://127.0.0.1:${barePort}/`)).ok, 'bare node:http answers')
    const subjects = [
      { name: 'bare node:http', port: barePort, pid: bare.pid!, request: list, rounds: [] as Round[] },
      { name: 'lists', port: instance.port, pid: instance.process.pid!, request: list, rounds: [] as Round[] },
      { name: 'creates', port: instance.port, pid: instance.process.pid!, request: create, rounds: [] as Round[] },
    ]

    // Alternates between the subjects, so that other load on the machine affects all of them alike.
    const livez = { 'the public port': [] as Livez[], 'the admin port': [] as Livez[] }
    for (let round = 1; round <= rounds; round += 1) {
      for (const { name, port, pid, request, rounds: paces } of subjects) {
        say(`round ${round}, ${name}: ${PEAK_CONNECTIONS} connections, then ${connections}`)
        const shared = { port, request, seconds, cpuSeconds: () => cpuSeconds(pid) }
        const peak = await crowd({ ...shared, connections: PEAK_CONNECTIONS })
        await setTimeout(BETWEEN_CROWDS_MS)
        if (plant && port === instance.port) instance.process.kill('SIGSTOP')
        /** Asks for /livez on new connections while a crowd is busy. */
        const beside = async (count: number, asked: { port: number; of: Livez[] }) => {
          let asking: Promise<Livez> | undefined
          const begun = () => void (asking = askLivez({ port: asked.port, seconds }))
          const pace = await crowd({ ...shared, connections: count, begun })
          if (asking !== undefined) asked.of.push(await asking)
          await setTimeout(BETWEEN_CROWDS_MS)
          return pace
        }
        if (port === instance.port) {
          paces.push({ peak, crowded: await beside(connections, { port: adminPort, of: livez['the admin port'] }) })
          await beside(BUSY_CONNECTIONS, { port, of: livez['the public port'] })
        } else paces.push({ peak, crowded: await crowd({ ...shared, connections }) })
        await setTimeout(BETWEEN_CROWDS_MS)
      }
    }
    const recovering = performance.now()
    const recovered = await fetch(`${instance.url}/livez`, {
      signal: AbortSignal.timeout(LIVEZ_WITHIN_MS),
    }).then(
      ({ ok }) => ok,
      () => false,
    )
    const recoveredMs = performance.now() - recovering

    for (const { name, rounds: paces } of subjects) process.stdout.write(`${describe(name, connections, paces)}\n`)
    const unanswered = Object.entries(livez).filter(([port, asked]) => !reportLivez(port, asked))
    process.stdout.write(
      `after the crowds: ${recovered ? 'served' : 'NOT served'} after ${Math.round(recoveredMs)} ms\n`,
    )
    const [, lists, creates] = subjects.map(({ rounds: paces }) =>
      paces.flatMap(({ peak, crowded }) => [peak, crowded]),
    )
    const served =
      [...lists!, ...creates!].every(({ perSecond, failed }) => perSecond > 0 && failed === 0) &&
      lists!.every(({ busy }) => busy === 0)
    return served && unanswered.length === 0 && recovered
  },
)

/** Prints how long new connections took for /livez. Returns whether all were answered. */
function reportLivez(port: string, asked: readonly Livez[]): boolean {
  const times = asked.flatMap((one) => one.times)
  const failures = asked.flatMap((one) => one.failures)
  const [median, p99] = [0.5, 0.99].map((quantile) => Math.round(percentile(times, quantile)))
  process.stdout.write(
    `/livez on new connections to ${port}: ${times.length} answers, ${failures.length} failures, median ${median} ms, p99 ${p99} ms\n`,
  )
  return times.length > 0 && failures.length === 0
}

function describe(name: string, connections: number, rounds: readonly Round[]): string {
  const of = (value: (round: Round) => number, digits = 0) => spread(figure(rounds.map(value)), digits)
  const sum = (count: (pace: Pace) => number) => rounds.reduce((total, { crowded }) => total + count(crowded), 0)
  const [atPeak, atMost] = [of(({ peak }) => peak.perSecond), of(({ crowded }) => crowded.perSecond)]
  const kept = of(({ peak, crowded }) => crowded.perSecond / peak.perSecond, 2)
  const keptByCpu = of(({ peak, crowded }) => crowded.perCpuSecond / peak.perCpuSecond, 2)
  return [
    `${name}: ${atPeak}/s at ${PEAK_CONNECTIONS} connections, ${atMost}/s at ${connections}`,
    `  kept ${kept}, per second of CPU time ${keptByCpu}`,
    `  p99 ${of(({ crowded }) => crowded.p99Ms)} ms, ${sum(({ refused }) => refused)} refused connections, ${sum(({ busy }) => busy)} answers 503, ${sum(({ failed }) => failed)} failed`,
  ].join('\n')
}

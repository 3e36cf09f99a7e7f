// Kills one worker of an instance after the other, while clients add animals and other clients keep connections open.
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { acceptedFrom, socketsOf } from '../../test/harness/connections/accepted-sockets.ts'
import { createKey, startInstance } from '../../test/harness/programs/instance.ts'
import { childrenOf } from '../../test/harness/programs/process-tree.ts'
import { killHard } from '../../test/harness/programs/processes.ts'
import { RawConnection } from '../../test/harness/connections/raw-http.ts'
import { until } from '../../test/harness/until.ts'
import { Clients } from '../../test/harness/failures/clients.ts'
import type { Kills } from '../../test/harness/failures/kills.ts'
import { loseNewest } from '../../test/harness/failures/planted-loss.ts'
import { type Audit, stopAndAudit } from '../../test/harness/failures/verdict.ts'

const PATIENCE_MS = 60_000
const WITNESSES = 24
/** A killed worker must be older than 5 s: several in a row that end sooner are a crash loop, which ends the service. */
const LEAST_LIFE_MS = 5200
const LONGEST_REST_MS = 500

export interface WorkerKills extends Kills {
  /** The number of processes, including the first. */
  processes: number
}

/** The connections that were open at a kill, by what happened to them. */
export interface Connections {
  /** Connections of the killed worker. */
  reset: number
  /** Connections of the other processes that were still served; any others are in `broken`. */
  carriedOn: number
  broken: string[]
}

export async function killWorkers({
  folder,
  database,
  processes,
  kills,
  clients: count,
  random,
  plant = false,
}: WorkerKills): Promise<Audit & { connections: Connections }> {
  const env = { PETSTORE_WORKERS: String(processes) }
  const { port, url, process: first } = await startInstance(database, join(folder, 'instance.log'), { env })
  const key = await createKey(database)
  const clients = new Clients(url, key, { count, patienceMs: PATIENCE_MS, random })
  const connections: Connections = { reset: 0, carriedOn: 0, broken: [] }
  const bornAt = new Map<number, number>()
  let witnesses: RawConnection[] = []
  for (let kill = 0; kill < kills; kill += 1) {
    const victim = await oldestWorker(first.pid!, processes - 1, bornAt)
    await setTimeout(random() * LONGEST_REST_MS)
    await clients.nextCreate()
    while (witnesses.length < WITNESSES) witnesses.push(new RawConnection(url))
    const cut = await ownedBy(victim, witnesses, port)
    process.kill(victim, 'SIGKILL')
    // Until the first process has noticed the kill, the victim would still count as the oldest worker.
    await until(() => !childrenOf(first.pid!).includes(victim), 'the killed worker is gone')
    if (plant) await loseNewest(database)
    await until(() => cut.every(({ socket }) => socket.destroyed), 'the connections of the killed worker end')
    witnesses = witnesses.filter((witness) => !cut.includes(witness))
    connections.reset += cut.length
    const carriedOn = await Promise.all(witnesses.map((witness) => isServed(witness, key)))
    connections.carriedOn += carriedOn.filter(Boolean).length
    connections.broken.push(
      ...carriedOn.filter((served) => !served).map(() => `a connection of another process, at kill ${kill + 1}`),
    )
    witnesses = witnesses.filter(({ socket }) => !socket.destroyed)
  }
  const audit = await stopAndAudit(url, key, clients)
  for (const { socket } of witnesses) socket.destroy()
  await killHard(first)
  return { ...audit, connections }
}

/** Waits until all workers run and the oldest is old enough to be killed; returns its process id. */
async function oldestWorker(firstProcess: number, count: number, bornAt: Map<number, number>): Promise<number> {
  let oldest: number | undefined
  await until(() => {
    const workers = childrenOf(firstProcess)
    for (const pid of workers) if (!bornAt.has(pid)) bornAt.set(pid, performance.now())
    oldest = workers.toSorted((one, other) => bornAt.get(one)! - bornAt.get(other)!)[0]
    return workers.length === count && performance.now() - bornAt.get(oldest!)! > LEAST_LIFE_MS
  }, 'a worker is old enough')
  return oldest!
}

async function ownedBy(pid: number, witnesses: readonly RawConnection[], port: number): Promise<RawConnection[]> {
  await until(
    () => witnesses.every(({ socket }) => socket.localPort !== undefined && !socket.connecting),
    'all are connected',
  )
  const inodes = await acceptedFrom(
    witnesses.map(({ socket }) => socket.localPort!),
    port,
  )
  const sockets = socketsOf(pid)
  return witnesses.filter(({ socket }) => sockets.has(inodes.get(socket.localPort!)!))
}

async function isServed(witness: RawConnection, key: string): Promise<boolean> {
  witness.send(`GET /v1/pets?limit=1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\n\r\n`)
  return witness.answer(15_000).then(
    ({ status }) => status === 200,
    () => false,
  )
}

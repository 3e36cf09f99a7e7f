// Simulates power cuts: kills an instance, and replaces its files by those that a disk without power would have kept.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { freePort } from '../../test/harness/connections/free-port.ts'
import { createKey, launchInstance, startInstance } from '../../test/harness/programs/instance.ts'
import { below, type Random } from '../../test/harness/random.ts'
import { Clients } from '../../test/harness/failures/clients.ts'
import { compileShim } from './shim.ts'
import { type Audit, stopAndAudit } from '../../test/harness/failures/verdict.ts'

const PATIENCE_MS = 60_000
/** The power fails after at most this many writes and syncs, which covers a start, load and a checkpoint. */
const LONGEST_LIFE = 2000
/** It fails after at most this many while a start recovers what a killed instance has left. */
const START = 60
/** An instance that makes fewer writes and syncs is killed after this time. */
const LIFE_LIMIT_MS = 20_000
const SECTOR = 512

export interface PowerCuts {
  folder: string
  cuts: number
  clients: number
  random: Random
  /** Injects the fault: a sync keeps nothing. */
  plant: boolean
}

export async function cutPowerUnderLoad({ folder, cuts, clients: count, random, plant }: PowerCuts): Promise<Audit> {
  const shim = compileShim('power-cut-shim', folder)
  const file = join(folder, 'petstore.db')
  const database = `sqlite:${file}`
  const log = join(folder, 'instance.log')
  const key = await createKey(database)
  copyFileSync(file, synced(file))
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const clients = new Clients(url, key, { count, patienceMs: PATIENCE_MS, random })
  const env = { LD_PRELOAD: shim, POWER_CUT_FILE: file, ...(plant && { POWER_CUT_LIES: '1' }) }
  const live = (more: Record<string, string> = {}) => {
    const POWER_CUT_AFTER = String(below(LONGEST_LIFE, random) + 1)
    return died(launchInstance(database, log, port, { ...env, POWER_CUT_AFTER, ...more }))
  }
  for (let cut = 0; cut < cuts; cut += 1) {
    // Before every third cut the instance is killed and started again. What the first one had not synced never reaches the disk by
    // itself, as after a failed sync. In turn, a process reads for long, as a backup does, or the power fails during the start.
    if (cut % 3 === 2) {
      const reader = cut % 2 === 0 ? await readForLong(file) : undefined
      await live({ POWER_CUT_AT: 'sync' })
      await live(reader ? {} : { POWER_CUT_AFTER: String(below(START, random) + 1) })
      reader?.kill('SIGKILL')
      if (reader) await once(reader, 'exit')
    } else await live()
    // At every other cut the disk keeps a random part of what was written since the last sync.
    for (const suffix of ['', '-wal', '-journal'])
      leaveOnDisk(file + suffix, cut % 2 === 0 ? () => false : () => random() < 0.5)
    rmSync(`${file}-shm`, { force: true })
  }
  await startInstance(database, log, { port })
  return stopAndAudit(url, key, clients)
}

/** Resolves with a process that has begun to read from the database, and does not end. */
async function readForLong(file: string): Promise<ChildProcess> {
  const program = `const db = new (require('node:sqlite').DatabaseSync)(process.argv[1])
    db.exec('BEGIN'); db.prepare('SELECT count(*) FROM pets').get(); console.log('reads'); setInterval(() => {}, 1000)`
  const child = spawn(process.execPath, ['-e', program, file], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(child.stdout, 'data')
  return child
}

async function died(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit')
  const life = new AbortController()
  void setTimeout(LIFE_LIMIT_MS, undefined, { signal: life.signal }).then(
    () => child.kill('SIGKILL'),
    () => {},
  )
  await exited
  life.abort()
  if (child.signalCode !== 'SIGKILL') throw new Error(`the instance ended by itself, with ${child.exitCode}`)
}

const synced = (path: string) => `${path}.synced`

/** Replaces a file by what the disk has kept: the synced bytes, and those sectors written later for which `survives` returns true. */
function leaveOnDisk(path: string, survives: () => boolean): void {
  if (!existsSync(path)) return
  const written = readFileSync(path)
  const kept = existsSync(synced(path)) ? readFileSync(synced(path)) : Buffer.alloc(0)
  const left = Buffer.alloc(survives() ? written.length : kept.length)
  kept.copy(left)
  for (let from = 0; from < left.length; from += SECTOR) {
    const sector = written.subarray(from, from + SECTOR)
    if (!sector.equals(kept.subarray(from, from + SECTOR)) && survives()) sector.copy(left, from)
  }
  for (const copy of [path, synced(path)]) writeFileSync(copy, left)
}

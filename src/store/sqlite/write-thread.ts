// Writing in a thread of its own. A commit waits for the disk, and in the thread that serves requests all of them would wait
// with it. Where the disk syncs at once, passing writes to another thread costs more than the wait, so it is measured first.
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { dirname, extname, join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { WriteThread } from '../../config.ts'
import { Channel, threadWire } from '../channel.ts'
import { type RemoteStore, withRemoteWrites } from '../remote-writes.ts'
import type { Store } from '../store.ts'
import { IN_MEMORY } from './database.ts'

/** From here on a sync is worth a thread; below, passing writes on makes creates slower and lists beside them no faster. */
const SLOW_SYNC_MS = 1
const TRIES = 5

export type ForThread = {
  call: RemoteStore['call']
  createEach: RemoteStore['createEach']
  close(): Promise<void>
}

export interface ThreadStart {
  path: string
  /** The number of commits, and of writes in them: the thread counts, this one reads. */
  counts: BigInt64Array
}

/** Returns a store that reads by `store` and writes in a thread; or the store itself, if no thread is wanted. */
export function inWriteThread(
  store: Store,
  path: string,
  when: WriteThread,
  measure: (folder: string) => number = syncTime,
): Store {
  if (path === IN_MEMORY || when === 'off' || (when === 'auto' && measure(dirname(path)) < SLOW_SYNC_MS)) return store
  const start: ThreadStart = { path, counts: new BigInt64Array(new SharedArrayBuffer(16)) }
  // An error in the thread is not listened for: it ends the process, as an error in this thread would.
  const thread = new Worker(new URL(`write-thread-program${extname(import.meta.url)}`, import.meta.url), {
    workerData: start,
  })
  const channel = new Channel<ForThread>(threadWire(thread), {})
  const remote: RemoteStore = {
    call: (...call) => channel.call('call', ...call),
    createEach: (newPets) => channel.call('createEach', newPets),
  }
  return {
    ...withRemoteWrites(store, remote),
    commits: () => ({ commits: Number(Atomics.load(start.counts, 0)), writes: Number(Atomics.load(start.counts, 1)) }),
    async close() {
      await channel.call('close')
      await thread.terminate()
      await store.close()
    },
  }
}

/** The shortest of a few syncs in this folder, in milliseconds: other work makes some longer. Zero on a disk that is full. */
export function syncTime(folder: string): number {
  let place: string | undefined
  try {
    place = mkdtempSync(join(folder, '.petstore-sync-'))
    const file = openSync(join(place, 'probe'), 'w')
    try {
      return Math.min(...Array.from({ length: TRIES }, () => timeOfSync(file)))
    } finally {
      closeSync(file)
    }
  } catch {
    return 0
  } finally {
    if (place !== undefined) rmSync(place, { recursive: true })
  }
}

function timeOfSync(file: number): number {
  writeSync(file, Buffer.alloc(4096))
  const started = performance.now()
  fdatasyncSync(file)
  return performance.now() - started
}

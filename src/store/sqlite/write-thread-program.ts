// The program of the thread that writes (write-thread.ts): a store of its own on the same file.
import { parentPort, workerData } from 'node:worker_threads'
import { Channel, threadWire } from '../channel.ts'
import { callRemote, createEach } from '../remote-writes.ts'
import { openSqliteStore } from './sqlite-store.ts'
import type { ForThread, ThreadStart } from './write-thread.ts'

const { path, counts } = workerData as ThreadStart
const store = openSqliteStore(path)

function count(): void {
  const { commits, writes } = store.commits()
  Atomics.store(counts, 0, BigInt(commits))
  Atomics.store(counts, 1, BigInt(writes))
}

const ours: ForThread = {
  call: (...call) => callRemote(store, ...call).finally(count),
  createEach: (newPets) => createEach(store, newPets).finally(count),
  close: () => store.close(),
}
// The channel lives as long as the thread does.
void new Channel(threadWire(parentPort!), ours)

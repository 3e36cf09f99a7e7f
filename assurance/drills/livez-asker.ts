// Requests /livez periodically, on a new connection each time, from a worker thread that the drill's load cannot delay.
import { setTimeout } from 'node:timers/promises'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'

const ASK_EVERY_MS = 50
/** Far more than the expected 100 ms: a busy machine alone cannot explain it. */
export const LIVEZ_WITHIN_MS = 10_000

export interface Livez {
  times: number[]
  failures: string[]
}

interface Asked {
  port: number
  seconds: number
}

export function askLivez(asked: Asked): Promise<Livez> {
  return new Promise((resolve, reject) => {
    new Worker(new URL(import.meta.url), { workerData: asked }).once('message', resolve).once('error', reject)
  })
}

async function ask({ port, seconds }: Asked): Promise<Livez> {
  const livez: Livez = { times: [], failures: [] }
  for (const end = performance.now() + seconds * 1000; performance.now() < end;) {
    const asked = performance.now()
    try {
      const { ok, status } = await fetch(`http://127.0.0.1:${port}/livez`, {
        headers: { Connection: 'close' },
        signal: AbortSignal.timeout(LIVEZ_WITHIN_MS),
      })
      if (ok) livez.times.push(performance.now() - asked)
      else livez.failures.push(String(status))
    } catch (error) {
      livez.failures.push(String(error))
    }
    await setTimeout(ASK_EVERY_MS)
  }
  return livez
}

// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
if (!isMainThread) parentPort!.postMessage(await ask(workerData as Asked))

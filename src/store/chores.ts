// What the first process of an instance does beside serving.
import { BATCH_PETS_KEPT_MS } from './batches/batch-store.ts'
import { IDEMPOTENCY_KEPT_MS } from './idempotency.ts'
import type { Report, Store } from './store.ts'
import { UPLOAD_KEPT_MS } from './uploads.ts'

interface Purged {
  purge(): Promise<unknown>
}

const CHORES_EVERY_MS = 600_000

/**
 * Purges expired records, now and every ten minutes. Returns a function that stops this; its promise resolves when what is running has
 * ended.
 */
export function startChores(
  { store, usage, sessions, report }: { store: Store; usage: Purged; sessions: Purged; report: Report },
  clock: () => number,
): () => Promise<void> {
  const stop = new AbortController()
  const { signal } = stop
  const purge = async () => {
    try {
      while (!signal.aborted && (await store.pets.purgeIdempotencyRecords(clock() - IDEMPOTENCY_KEPT_MS)) > 0);
      while (!signal.aborted && (await store.uploads.purge(clock() - UPLOAD_KEPT_MS)));
      while (!signal.aborted && (await store.batches.purge(clock() - BATCH_PETS_KEPT_MS)) > 0);
      if (!signal.aborted) await usage.purge()
      if (!signal.aborted) await sessions.purge()
    } catch (error) {
      report({ level: 'error', message: 'old records could not be purged; this is retried later', details: { error } })
    }
  }
  let running = purge()
  const timer = setInterval(() => void (running = purge()), CHORES_EVERY_MS).unref()
  return async () => {
    stop.abort()
    clearInterval(timer)
    await running
  }
}

// Housekeeping while the service runs: forgets records that are past their time, at the start and then every ten minutes.
import type { Sessions } from './accounts/sessions.ts'
import type { Usage } from './accounts/usage.ts'
import type { Log } from './log.ts'
import { IDEMPOTENCY_KEPT_MS } from './store/idempotency.ts'
import type { Store } from './store/store.ts'

const EVERY_MS = 600_000

export interface ChoreParts {
  store: Store
  usage: Usage
  sessions: Sessions
  log: Log
  clock: () => number
}

/** Returns a function that stops the chores; it resolves when the one that is running has ended. */
export function startChores({ store, usage, sessions, log, clock }: ChoreParts): () => Promise<void> {
  const stop = new AbortController()
  const purge = async () => {
    try {
      while (!stop.signal.aborted && (await store.pets.purgeIdempotencyRecords(clock() - IDEMPOTENCY_KEPT_MS)) > 0);
      if (!stop.signal.aborted) await usage.purge()
      if (!stop.signal.aborted) await sessions.purge()
    } catch (error) {
      log.error({ error }, 'old records could not be purged; this is retried later')
    }
  }
  let running = purge()
  const timer = setInterval(() => void (running = purge()), EVERY_MS).unref()
  return async () => {
    stop.abort()
    clearInterval(timer)
    await running
  }
}

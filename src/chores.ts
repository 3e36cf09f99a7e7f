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

/** Returns a function that stops the chores. */
export function startChores({ store, usage, sessions, log, clock }: ChoreParts): () => void {
  const purge = async () => {
    try {
      while ((await store.pets.purgeIdempotencyRecords(clock() - IDEMPOTENCY_KEPT_MS)) > 0);
      await usage.purge()
      await sessions.purge()
    } catch (error) {
      log.error({ error }, 'old records could not be purged; this is retried later')
    }
  }
  void purge()
  const timer = setInterval(() => void purge(), EVERY_MS).unref()
  return () => clearInterval(timer)
}

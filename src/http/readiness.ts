// Whether the service can serve requests, for /readyz and the metrics.
import { NoWrites, type Store, StoreBusy } from '../store/store.ts'
import { withinTime } from '../store/within-time.ts'

/** A database that takes longer counts as unavailable: load balancers and Prometheus wait only a few seconds for an answer. */
const ANSWER_WITHIN_MS = 2000

/** Resolves with the reason why the service is not ready, or undefined if it is. */
export type Readiness = () => Promise<string | undefined>

export function createReadiness(store: Store, isStopping: () => boolean): Readiness {
  return async () => {
    if (isStopping()) return 'The service is stopping.'
    try {
      await withinTime(store.ping(), ANSWER_WITHIN_MS)
      return undefined
    } catch (error) {
      if (error instanceof NoWrites) return 'The database accepts no writes.'
      return error instanceof StoreBusy ? 'All connections to the database are busy.' : 'The database does not answer.'
    }
  }
}

// Whether the service can serve: for /readyz and the metrics.
import { NoWrites, type Store, StoreBusy } from '../store/store.ts'
import { withinTime } from '../store/within-time.ts'

/** Load balancers and Prometheus wait a few seconds for an answer; a database that takes this long counts as unavailable. */
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

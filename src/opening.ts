// Opens the store for serving: waits for a database that is unavailable, and refuses one of the other environment.
import type { Config } from './config.ts'
import type { Log } from './log.ts'
import { requireEnvironment } from './store/environment.ts'
import { openStore } from './store/open-store.ts'
import type { Report } from './store/store.ts'
import { type Opening, openOrWait } from './store/waiting-store.ts'

/** Throws `CannotOpenStore` if the store can't be opened, now or later. A worker leaves it to the first process to tell how it went. */
export function openForServing(config: Config, log: Log, isWorker = false): Promise<Opening> {
  const report: Report = ({ level, message, details }) => log[level](details ?? {}, message)
  // Before it listens, the service may stand still while another process holds the lock of a SQLite file; later it may not.
  let lockWait: { lockWaitMs?: number } = {}
  return openOrWait(
    async () => {
      const options = {
        ...lockWait,
        report,
        processes: config.workers,
        writeThread: isWorker ? ('off' as const) : config.writeThread,
      }
      lockWait = { lockWaitMs: 0 }
      const store = await openStore(config.database, options)
      try {
        await requireEnvironment(store, config)
      } catch (error) {
        await store.close()
        throw error
      }
      if (!isWorker) for (const warning of store.opened.warnings) log.warn(warning)
      return store
    },
    isWorker ? () => {} : report,
  )
}

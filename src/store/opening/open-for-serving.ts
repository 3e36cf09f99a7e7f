// Opens the store for serving. While the database is unavailable the service is live but not ready: the store refuses every
// call until an attempt to open it succeeds. A database of the other environment is refused.
import { setTimeout } from 'node:timers/promises'
import { type DatabaseAddress, describeDatabase } from '../database/database-address.ts'
import { openStore } from './open-store.ts'
import { type EnvironmentSetting, ensureEnvironment } from '../database/environment.ts'
import {
  CannotCloseStore,
  CannotOpenStore,
  type Observe,
  type Report,
  type ServingOptions,
  type Store,
  StoreUnavailable,
} from '../store.ts'

const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 10_000

export interface Opening {
  /** Until the store is open, reading `store.pets` or what else needs the database throws `StoreUnavailable`, so read it for each call. */
  store: Store
  /** Resolves when the store is open, or was closed before that; rejects if no later attempt can open it. */
  opened: Promise<void>
}

export interface OpeningOptions extends EnvironmentSetting {
  processes: number
  report: Report
  observe?: Observe | undefined
  onBroken: ServingOptions['onBroken']
  /**
   * Given in a worker: whether the first process of the instance has opened the store. It makes the log of SQLite durable before, so a
   * worker opens the store after it, and leaves checkpoints and reports about opening to it.
   */
  isStoreOpen?: (() => Promise<boolean>) | undefined
}

/** Throws `CannotOpenStore` if the store can't be opened and no later attempt can succeed. */
export async function openForServing(database: DatabaseAddress, options: OpeningOptions): Promise<Opening> {
  const { processes, report, observe, onBroken, isStoreOpen } = options
  const isWorker = isStoreOpen !== undefined
  const open = async (lockWaitMs?: number) => {
    const onWait = (message: string) => report({ level: 'warn', message })
    const serving = { checkpoints: !isWorker, onBroken }
    const attempt = { report, onWait, observe, processes, serving, lockWaitMs }
    if (isWorker && !(await isStoreOpen())) throw new StoreUnavailable('the first process has not opened it yet')
    const store = await openStore(database, attempt)
    try {
      await requireEnvironment(store, database, options)
    } catch (error) {
      await store.close()
      throw error
    }
    if (!isWorker) for (const message of store.opened.warnings) report({ level: 'warn', message })
    return store
  }
  const reportOpening = isWorker ? () => {} : report
  try {
    return { store: await open(), opened: Promise.resolve() }
  } catch (error) {
    const reason = transientReason(error)
    reportOpening({
      level: 'error',
      message: 'waiting for the database; requests are answered 503',
      details: { reason },
    })
    // The service listens from now on: only the first attempt may block the event loop while another process locks the SQLite file.
    return waitFor(() => open(0), reason, error, reportOpening)
  }
}

/** Throws `CannotOpenStore` if the database belongs to the other environment. */
async function requireEnvironment(
  store: Store,
  database: DatabaseAddress,
  { environment, isChosen, report }: OpeningOptions,
): Promise<void> {
  const before = await store.environment()
  const recorded = await ensureEnvironment(store, { environment, isChosen })
  if (before !== undefined && before !== recorded)
    report({ level: 'notice', message: `the database belongs to ${recorded} now; ${before} was its default` })
  if (recorded === environment) return
  throw new CannotOpenStore(
    `${describeDatabase(database)} belongs to ${recorded}, but the setting is ${environment}${isChosen ? '' : ', its default'}. Set PETSTORE_ENVIRONMENT=${recorded} to serve it, ` +
      `or name another database. To move it to ${environment}, where its keys are refused:`,
    { command: ['environment', 'set', environment] },
  )
}

/** Returns a store that refuses every call until an attempt to open it succeeds. */
function waitFor(open: () => Promise<Store>, firstReason: string, firstError: unknown, report: Report): Opening {
  let store: Store | undefined
  let [reason, cause] = [firstReason, firstError]
  let closed = false
  let givenUp = false
  const waking = new AbortController()

  async function keepTrying(): Promise<void> {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      await setTimeout(pauseMs, undefined, { signal: waking.signal }).catch(() => {})
      if (closed || givenUp) return
      try {
        store = await open()
        if (givenUp) store.giveUp()
        else if (closed) await store.close()
        else
          report({ level: 'notice', message: 'database found; ready', details: store.connections()?.servers[0] ?? {} })
        return
      } catch (error) {
        reason = transientReason(error)
        cause = error
      }
    }
  }

  function requireOpen(): Store {
    if (store === undefined) throw new StoreUnavailable(`The database has not been opened yet: ${reason}`, { cause })
    return store
  }

  const own: Partial<Store> = {
    get opened() {
      return store?.opened ?? { created: false, migrations: [], warnings: [] }
    },
    version: () => store?.version(),
    versionAfterSync: () => store?.versionAfterSync(),
    connections: () => store?.connections(),
    commits: () => store?.commits() ?? { commits: 0, writes: 0 },
    giveUp() {
      givenUp = true
      store?.giveUp()
    },
    ping: async () => requireOpen().ping(),
    async close() {
      closed = true
      waking.abort()
      await store?.close()
    },
  }
  const get = (_own: object, name: string): unknown => Reflect.get(name in own ? own : requireOpen(), name)
  return { opened: keepTrying(), store: new Proxy(own, { get }) as Store }
}

/** Returns the reason of a transient error; rethrows one that every later attempt would meet too, or after which none may be made. */
function transientReason(error: unknown): string {
  if (error instanceof CannotCloseStore) throw error
  if (error instanceof StoreUnavailable || (error instanceof CannotOpenStore && error.transient)) return error.message
  throw error
}

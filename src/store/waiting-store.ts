// Lets the service start while its database is unavailable: it is live but not ready, and opens the store when it can.
import { setTimeout } from 'node:timers/promises'
import { CannotOpenStore, type Report, type Store, StoreUnavailable } from './store.ts'

const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 10_000

export interface Opening {
  store: Store
  /** Resolves when the store is open, or closed before it was; rejects if it can't be opened, now or later. */
  opened: Promise<void>
}

/** Opens the store. If that fails for now, resolves with one that refuses every call until a later attempt succeeds. */
export async function openOrWait(open: () => Promise<Store>, report: Report): Promise<Opening> {
  try {
    return { store: await open(), opened: Promise.resolve() }
  } catch (error) {
    const reason = passingReason(error)
    report({ level: 'error', message: 'waiting for the database; requests are answered 503', details: { reason } })
    return waitFor(open, reason, report)
  }
}

function waitFor(open: () => Promise<Store>, firstReason: string, report: Report): Opening {
  let store: Store | undefined
  let reason = firstReason
  let closed = false
  const waking = new AbortController()

  async function keepTrying(): Promise<void> {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      await setTimeout(pauseMs, undefined, { signal: waking.signal }).catch(() => {})
      if (closed) return
      try {
        store = await open()
        if (closed) await store.close()
        else report({ level: 'notice', message: 'database found; ready', details: store.connections() ?? {} })
        return
      } catch (error) {
        reason = passingReason(error)
      }
    }
  }

  function opened(): Store {
    if (store === undefined) throw new StoreUnavailable(`The database has not been opened yet: ${reason}`)
    return store
  }

  return {
    opened: keepTrying(),
    store: {
      get opened() {
        return store?.opened ?? { created: false, migrations: [], warnings: [] }
      },
      pets: later(() => opened().pets),
      accounts: later(() => opened().accounts),
      imports: later(() => opened().imports),
      records: later(() => opened().records),
      version: () => store?.version(),
      connections: () => store?.connections(),
      commits: () => store?.commits() ?? { commits: 0, writes: 0 },
      environment: async () => opened().environment(),
      recordEnvironment: async (...parameters) => opened().recordEnvironment(...parameters),
      isUnfinishedCopy: async () => opened().isUnfinishedCopy(),
      setUnfinishedCopy: async (unfinished) => opened().setUnfinishedCopy(unfinished),
      ping: async () => opened().ping(),
      async close() {
        closed = true
        waking.abort()
        await store?.close()
      },
    },
  }
}

/** Stands for a part of the store whose methods all return promises. */
function later<T extends object>(part: () => T): T {
  return new Proxy({} as T, {
    get:
      (_target, name) =>
      async (...parameters: unknown[]) => {
        const present = part()
        return (Reflect.get(present, name) as (...parameters: unknown[]) => unknown).apply(present, parameters)
      },
  })
}

/** Returns why the database can't be opened for now; throws what no later attempt can change. */
function passingReason(error: unknown): string {
  if (error instanceof StoreUnavailable || (error instanceof CannotOpenStore && error.passing)) return error.message
  throw error
}

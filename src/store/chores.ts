// What the first process of an instance does beside serving.
import { once } from 'node:events'
import { IDEMPOTENCY_KEPT_MS } from './idempotency.ts'
import { isPerson } from './people-store.ts'
import type { Report, Store } from './store.ts'
import { UPLOAD_KEPT_MS } from './uploads.ts'

interface Purged {
  purge(): Promise<unknown>
}

/** After an upgrade all accounts are members if there are several. */
const NO_MANAGER =
  'no account is a manager, who invites people and removes animals; name one: petstore account manager EMAIL'

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
  const attempt = async (message: string, work: () => Promise<void>): Promise<void> => {
    try {
      await work()
    } catch (error) {
      report({ level: 'error', message, details: { error } })
    }
  }
  const purge = () =>
    attempt('old records could not be purged; this is retried later', async () => {
      while (!signal.aborted && (await store.pets.purgeIdempotencyRecords(clock() - IDEMPOTENCY_KEPT_MS)) > 0);
      while (!signal.aborted && (await store.uploads.purge(clock() - UPLOAD_KEPT_MS)));
      if (!signal.aborted) await usage.purge()
      if (!signal.aborted) await sessions.purge()
    })
  const noticeManagers = () =>
    attempt('accounts could not be read to look for a manager', async () => {
      const people = (await store.accounts.listAccounts()).filter(isPerson)
      if (people.length > 0 && !people.some(({ role }) => role === 'manager'))
        report({ level: 'notice', message: NO_MANAGER })
    })
  const keepPurging = async () => {
    let running = purge()
    const timer = setInterval(() => void (running = purge()), CHORES_EVERY_MS).unref()
    await once(signal, 'abort')
    clearInterval(timer)
    await running
  }
  const chores = [noticeManagers(), keepPurging()]
  return async () => {
    stop.abort()
    await Promise.all(chores)
  }
}

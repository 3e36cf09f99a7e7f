// What the first process of an instance does beside serving.
import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
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

/** Animals are settled a minute after they were added (postgres/settled-ids.ts). */
const SETTLE_EVERY_MS = 60_000

/** How long indexing pauses: when up to date, after a failure, and after a batch, as a multiple of the batch's time. */
const INDEX_REST = { upToDateMs: 2000, failedMs: 60_000, factor: 40 }

/**
 * Purges expired records, now and every ten minutes, settles the counts every minute, and keeps the index of the search up to date.
 * Returns a function that stops this; its promise resolves when what is running has ended.
 */
export function startChores(
  { store, usage, sessions, report }: { store: Store; usage: Purged; sessions: Purged; report: Report },
  clock: () => number,
): () => Promise<void> {
  const stop = new AbortController()
  const { signal } = stop
  /** Resolves with undefined, after a report, if the work has failed. */
  const attempt = async <T>(message: string, work: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await work()
    } catch (error) {
      report({ level: 'error', message, details: { error } })
      return undefined
    }
  }
  const purge = () =>
    attempt('old records could not be purged; this is retried later', async () => {
      while (!signal.aborted && (await store.pets.purgeIdempotencyRecords(clock() - IDEMPOTENCY_KEPT_MS)) > 0);
      while (!signal.aborted && (await store.uploads.purge(clock() - UPLOAD_KEPT_MS)));
      if (!signal.aborted) await usage.purge()
      if (!signal.aborted) await sessions.purge()
    })
  const settle = () =>
    attempt('counts by status could not be settled; this is retried in a minute', async () => {
      while (!signal.aborted && (await store.pets.settleCounts()));
    })
  const noticeManagers = () =>
    attempt('accounts could not be read to look for a manager', async () => {
      const people = (await store.accounts.listAccounts()).filter(isPerson)
      if (people.length > 0 && !people.some(({ role }) => role === 'manager'))
        report({ level: 'notice', message: NO_MANAGER })
    })
  /** Pauses between batches, so that indexing hardly slows requests, even while it fills the index of an old database. */
  const keepIndex = async () => {
    while (!signal.aborted) {
      const restMs = await attempt(
        'names could not be indexed for the search; this is retried in a minute',
        async () => {
          const started = performance.now()
          const isMoreLeft = await store.pets.indexWords()
          return isMoreLeft ? (performance.now() - started) * INDEX_REST.factor : INDEX_REST.upToDateMs
        },
      )
      await setTimeout(restMs ?? INDEX_REST.failedMs, undefined, { signal, ref: false }).catch(() => {})
    }
  }
  /** Runs work now and at this interval. */
  const repeat = async (work: () => Promise<unknown>, everyMs: number) => {
    let running = work()
    const timer = setInterval(() => void (running = work()), everyMs).unref()
    await once(signal, 'abort')
    clearInterval(timer)
    await running
  }
  const chores = [noticeManagers(), keepIndex(), repeat(purge, CHORES_EVERY_MS), repeat(settle, SETTLE_EVERY_MS)]
  return async () => {
    stop.abort()
    await Promise.all(chores)
  }
}

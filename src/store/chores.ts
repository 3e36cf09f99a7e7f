// What the first process of an instance does beside serving.
import { setTimeout } from 'node:timers/promises'
import { IDEMPOTENCY_KEPT_MS } from './idempotency.ts'
import { whyBehind } from './partition-store.ts'
import { isPerson } from './people-store.ts'
import type { Report, Store } from './store.ts'

/** What has expired records in the store. */
interface Purged {
  purge(): Promise<unknown>
}

/** After an upgrade all accounts are members if there are several. */
const NO_MANAGER =
  'no account is a manager, who invites people and removes animals; name one: petstore account manager EMAIL'

const CHORES_EVERY_MS = 600_000

/** Creates take longer to fill the smallest partition (cli/partition.ts). */
const PARTITIONS_EVERY_MS = 10_000

/** How long indexing pauses: when up to date, after a failure, and after a batch, as a multiple of the batch's time. */
const INDEX_REST = { upToDateMs: 2000, failedMs: 60_000, factor: 40 }

/**
 * Purges expired records, now and every ten minutes, keeps a partition ahead of the ids, and keeps the index of the search up to
 * date. Returns a function that stops this; its promise resolves when what is running has ended.
 */
export function startChores(
  { store, usage, sessions, report }: { store: Store; usage: Purged; sessions: Purged; report: Report },
  clock: () => number,
): () => Promise<void> {
  const stop = new AbortController()
  const purge = async () => {
    try {
      while (!stop.signal.aborted && (await store.pets.purgeIdempotencyRecords(clock() - IDEMPOTENCY_KEPT_MS)) > 0);
      if (!stop.signal.aborted) await usage.purge()
      if (!stop.signal.aborted) await sessions.purge()
    } catch (error) {
      report({ level: 'error', message: 'old records could not be purged; this is retried later', details: { error } })
    }
  }
  let behind: string | undefined
  const keepAhead = async () => {
    const before = behind
    try {
      const partitions = await store.partitions?.keepAhead()
      behind = partitions && whyBehind(partitions)
      if (behind !== undefined && behind !== before)
        report({
          level: 'warn',
          message: `${behind}; run the command partition as the owner of the tables`,
          details: { ahead: partitions!.ahead },
        })
    } catch (error) {
      // Once for each outage, since it is tried every ten seconds.
      behind = 'the partitions could not be read'
      if (behind !== before)
        report({
          level: 'error',
          message: 'partitions could not be checked; this is retried every ten seconds',
          details: { error },
        })
    }
  }
  const noticed = noticeManagers(store, report)
  const indexing = keepIndex(store, report, stop.signal)
  const repeated = [repeat(purge, CHORES_EVERY_MS), repeat(keepAhead, PARTITIONS_EVERY_MS)]
  return async () => {
    stop.abort()
    await Promise.all([...repeated.map((end) => end()), noticed, indexing])
  }
}

/** Runs work now and at this interval. Returns a function that stops this. */
function repeat(work: () => Promise<void>, everyMs: number): () => Promise<void> {
  let running = work()
  const timer = setInterval(() => void (running = work()), everyMs).unref()
  return () => {
    clearInterval(timer)
    return running
  }
}

async function noticeManagers(store: Store, report: Report): Promise<void> {
  try {
    const people = (await store.accounts.listAccounts()).filter(isPerson)
    if (people.length > 0 && !people.some(({ role }) => role === 'manager'))
      report({ level: 'notice', message: NO_MANAGER })
  } catch (error) {
    report({ level: 'error', message: 'accounts could not be read to look for a manager', details: { error } })
  }
}

/** Pauses between batches, so that indexing hardly slows requests, even while it fills the index of an old database. */
async function keepIndex(store: Store, report: Report, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const started = performance.now()
    let restMs = INDEX_REST.upToDateMs
    try {
      if (await store.pets.indexWords()) restMs = (performance.now() - started) * INDEX_REST.factor
    } catch (error) {
      restMs = INDEX_REST.failedMs
      report({
        level: 'error',
        message: 'names could not be indexed for the search; this is retried in a minute',
        details: { error },
      })
    }
    await setTimeout(restMs, undefined, { signal, ref: false }).catch(() => {})
  }
}

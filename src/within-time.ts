// A bound on a wait: for the database, or for the last steps of a stop.
import type { Log } from './log.ts'

/** How long each of the last steps of a stop may take: a database that hangs must not hold it up. */
const LAST_STEP_MS = 1500

/** There was no answer in time. Whether what was asked for has happened, or will, is unknown. */
export class Overdue extends Error {
  override name = 'Overdue'
  constructor(limitMs: number) {
    super(`no answer within ${limitMs} ms`)
  }
}

/** Rejects with `Overdue` if this has not settled in time; what it settles with later is ignored here. */
export function withinTime<T>(promise: Promise<T>, limitMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Overdue(limitMs)), limitMs)
    promise.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

/** Waits for one of the last steps of a stop; what goes wrong is logged as `failure`. */
export async function lastStep(step: Promise<unknown>, failure: string, log: Log): Promise<void> {
  await withinTime(step, LAST_STEP_MS).catch((error: unknown) => log.error({ error }, failure))
}

// A person's share of long work, in whichever tabs and sessions, so that nobody waits behind another person: at most two files are read at
// a time, and one search. What several requests ask of a file is done once, and ends when the last of their clients has gone.
import { setImmediate } from 'node:timers/promises'
import { ClientLeft, unlessLeft } from '../../http/connections/client-left.ts'
import type { MemberVisit } from './visit.ts'

/** How many files a person reads at a time: one is brought in or shown while another is added. Each process counts its own. */
const READINGS = 2

/** The message is a sentence for the person. */
export class TooManyReadings extends Error {
  override name = 'TooManyReadings'
}

const TWO_AT_WORK =
  'Two of your files or changes are still at work, in this window or another one. This one was not begun.'
const SEARCHED_AGAIN = 'You have searched again meanwhile, in this window or another one. This search was given up.'

/** How many files each account reads, by its id. */
const counts = new Map<string, number>()

/** Rejects with `TooManyReadings` if the account reads as many files as it may. */
export async function inShare<T>(accountId: string, read: () => Promise<T>): Promise<T> {
  const count = counts.get(accountId) ?? 0
  if (count === READINGS) throw new TooManyReadings(TWO_AT_WORK)
  counts.set(accountId, count + 1)
  try {
    return await read()
  } finally {
    const others = counts.get(accountId)! - 1
    if (others > 0) counts.set(accountId, others)
    else counts.delete(accountId)
  }
}

interface Reading {
  result: Promise<unknown>
  /** How many requests wait for the result. */
  asking: number
  left: AbortController
}

const readings = new Map<string, Reading>()

/** Resolves with the result of `read`, or of the reading of this key that has begun. `read` ends when its signal aborts. */
export async function readOnce<T>(
  key: string,
  { who, left }: MemberVisit,
  read: (left: AbortSignal) => Promise<T>,
): Promise<T> {
  left.throwIfAborted()
  const begin = (): Reading => {
    const everyoneLeft = new AbortController()
    const result = inShare(who.account.id, () => read(everyoneLeft.signal))
    return { result, asking: 0, left: everyoneLeft }
  }
  const reading = readings.get(key) ?? begin()
  readings.set(key, reading)
  reading.asking += 1
  try {
    return await unlessLeft(reading.result as Promise<T>, left)
  } finally {
    reading.asking -= 1
    if (reading.asking === 0) {
      readings.delete(key)
      reading.left.abort(new ClientLeft())
    }
  }
}

/** The last search of each account that has not ended. */
const searches = new Map<string, AbortController>()

/** Runs a search until its client has gone, or the person searches again. Of those that arrive in one turn only the last one begins. */
export async function searchAlone<T>(
  { who: { account }, left }: MemberVisit,
  search: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  searches.get(account.id)?.abort(new TooManyReadings(SEARCHED_AGAIN))
  const own = new AbortController()
  searches.set(account.id, own)
  try {
    await setImmediate()
    const signal = AbortSignal.any([left, own.signal])
    signal.throwIfAborted()
    return await search(signal)
  } finally {
    if (searches.get(account.id) === own) searches.delete(account.id)
  }
}

// Waits until a condition holds.
import { setTimeout } from 'node:timers/promises'

/** Polls a condition; a rejection counts as false. Rejects after `withinMs`; the default suits even a slow machine. */
export async function until(
  holds: () => boolean | Promise<boolean>,
  what = 'what was waited for',
  withinMs = 120_000,
): Promise<void> {
  const deadline = performance.now() + withinMs
  let cause: unknown
  for (;;) {
    try {
      if (await holds()) return
      cause = undefined
    } catch (error) {
      cause = error
    }
    if (performance.now() > deadline) throw new Error(`not within ${withinMs / 1000} s: ${what}`, { cause })
    await setTimeout(10)
  }
}

// Random numbers from a seed: the same seed gives the same numbers.

/** Returns a number from 0 to 1, like Math.random. */
export type Random = () => number

/** Creates a Mulberry32 generator. */
export function seeded(seed: number): Random {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** Returns a whole number from 0 to `count` - 1. */
export function below(count: number, random: Random): number {
  return Math.floor(random() * count)
}

export function oneOf<T>(choices: readonly T[], random: Random): T {
  return choices[below(choices.length, random)]!
}

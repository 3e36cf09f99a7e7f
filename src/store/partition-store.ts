// The port: the animals in partitions by id, or distributed over a cluster, which only PostgreSQL has.

export interface PartitionStore {
  /** What `read` resolved with last. */
  known: Partitions | undefined

  /** Over how many shards the animals were distributed at the last `read`; undefined if they were not. */
  shards: number | undefined

  /** Resolves with undefined if the animals are one table. */
  read(): Promise<Partitions | undefined>

  /** Makes the next partition if less than a whole one is left. Resolves like `read`. */
  keepAhead(): Promise<Partitions | undefined>

  /**
   * Moves the animals into partitions of `size` ids while instances run; in partitions already, it gives those beyond the last
   * one a partition. Calls `say` before. Resolves with the milliseconds that requests waited. Throws `PartitionRefused`.
   */
  split(size: bigint | undefined, say: (line: string) => void): Promise<number>

  /** Distributes the animals over the workers of Citus. Like `split` otherwise. */
  distribute(shards: number, say: (line: string) => void): Promise<number>
}

export interface Partitions {
  /** How many there are, with the one for ids beyond all others. */
  count: number
  /** How many ids the newest one has. */
  size: bigint
  /** The first id beyond the newest one. */
  end: bigint
  /** The highest id so far. */
  newest: bigint
  /** The ids from `newest` to `end`, in partitions. */
  ahead: number
  /** Whether animals have ids from `end` on. */
  hasBeyond: boolean
}

/** Returns what is wrong; undefined if at least one partition is ahead. The command partition, as the owner of the tables, fixes it. */
export function whyBehind({ ahead, hasBeyond }: Partitions): string | undefined {
  if (ahead >= 1) return undefined
  return hasBeyond ? 'animals are beyond the last partition' : 'the next partition is missing'
}

// How many connections there may be: the setting at most, fewer where the database does not accept that many.

/** After a refused connection, one more is tried after this time; after each further refusal, after twice the time. */
const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 30_000

/** Writes leave this share of the connections to reads: with a lock on a table, they may all wait for seconds. */
const READ_SHARE = 0.25

export class ConnectionLimit {
  readonly #size: number
  /** What the database accepts, as far as we know. */
  #accepted: number
  #pauseMs = FIRST_PAUSE_MS
  #mayTryMoreAt = 0

  constructor(size: number) {
    this.#size = size
    this.#accepted = size
  }

  /** How many connections may be used. */
  get all(): number {
    return this.#accepted
  }

  /** How many of them writes may use, those parked included. A single connection is shared. */
  get writes(): number {
    return Math.max(1, this.#accepted - Math.max(1, Math.floor(this.#accepted * READ_SHARE)))
  }

  /** Whether to open one more beside this many. */
  allowsMore(open: number): boolean {
    return open < this.#accepted || (open < this.#size && performance.now() >= this.#mayTryMoreAt)
  }

  opened(): void {
    this.#accepted = this.#size
    this.#pauseMs = FIRST_PAUSE_MS
  }

  /** One more was refused beside this many. */
  refused(open: number): void {
    this.#accepted = Math.max(1, open)
    this.#mayTryMoreAt = performance.now() + this.#pauseMs
    this.#pauseMs = Math.min(2 * this.#pauseMs, LONGEST_PAUSE_MS)
  }
}

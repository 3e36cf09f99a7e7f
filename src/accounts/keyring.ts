// Finds the API key that a request was sent with. Remembers good keys for a moment, so that most requests need no look-up.
import type { ErrorCode } from '../contract/errors.ts'
import type { Environment } from '../contract/operations.ts'
import type { AccountStore, ApiKey } from '../store/store.ts'
import { environmentOf, hashKey, isExpired, isWellFormedKey } from './api-keys.ts'

/** A key revoked by another process is refused here after at most this time; the documentation promises 5 seconds. */
const REMEMBERED_MS = 2000
const REMEMBERED_KEYS = 10_000

export type KeyProblem = Extract<
  ErrorCode,
  'malformed_api_key' | 'wrong_environment' | 'unknown_api_key' | 'revoked_api_key' | 'expired_api_key'
>

export class Keyring {
  readonly #store: AccountStore
  readonly #environment: Environment
  readonly #clock: () => number
  /** Ages are measured with it, so that a wall clock that is set back lengthens none. */
  readonly #monotonic: () => number
  /** Counts the revocations in this process: a look-up that began before one must not be remembered after it. */
  #revocations = 0
  readonly #remembered = new Map<string, { key: ApiKey; until: number }>()

  constructor(store: AccountStore, environment: Environment, clock: () => number, monotonic: () => number) {
    this.#store = store
    this.#environment = environment
    this.#clock = clock
    this.#monotonic = monotonic
  }

  /**
   * Answers without the store: returns a key that was found good a moment ago, or what is wrong with the key's format, so
   * that a typo or another environment's key never reaches the database. Returns undefined if `find` must be asked.
   */
  recall(secret: string): ApiKey | KeyProblem | undefined {
    const entry = this.#remembered.get(secret)
    if (entry === undefined) return this.#formatProblem(secret)
    if (this.#monotonic() < entry.until && !isExpired(entry.key, this.#clock())) return entry.key
    this.#remembered.delete(secret)
    return undefined
  }

  #formatProblem(secret: string): KeyProblem | undefined {
    if (!isWellFormedKey(secret)) return 'malformed_api_key'
    return environmentOf(secret) === this.#environment ? undefined : 'wrong_environment'
  }

  /** Looks up a well-formed secret; returns the key, or what is wrong with it. */
  async find(secret: string): Promise<ApiKey | KeyProblem> {
    const [revocations, asked] = [this.#revocations, this.#monotonic()]
    const key = await this.#store.keyByHash(hashKey(secret))
    if (key === undefined) return 'unknown_api_key'
    if (key.revokedAt !== undefined) return 'revoked_api_key'
    if (isExpired(key, this.#clock())) return 'expired_api_key'
    if (revocations === this.#revocations) this.#remember(secret, key, asked)
    return key
  }

  /** Makes every key's next request ask the store; called when this process revokes a key or removes an account. */
  forgetAll(): void {
    this.#revocations += 1
    this.#remembered.clear()
  }

  #remember(secret: string, key: ApiKey, asked: number): void {
    if (this.#remembered.size >= REMEMBERED_KEYS) this.#remembered.clear()
    this.#remembered.set(secret, { key, until: asked + REMEMBERED_MS })
  }
}

// Who calls with this API key? Remembers good keys for a moment, so that a busy caller costs no look-up a request.
import type { ErrorCode } from '../contract/errors.ts'
import type { Environment } from '../contract/operations.ts'
import type { AccountStore, ApiKey } from '../store/store.ts'
import { environmentOf, hashKey, isExpired, isWellFormedKey } from './api-keys.ts'

/** A key revoked elsewhere is refused here after this time at the latest; the promise is 5 seconds. */
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
  /** Counts the times something was revoked here: a look-up that began before must not be remembered after. */
  #revocations = 0
  readonly #remembered = new Map<string, { key: ApiKey; until: number }>()

  constructor(store: AccountStore, environment: Environment, clock: () => number) {
    this.#store = store
    this.#environment = environment
    this.#clock = clock
  }

  /**
   * What can be told at once: the key where it was found good a moment ago, or what is wrong with its form, so that a
   * typo or another environment's key never reaches the database. Undefined means: ask `find`.
   */
  recall(secret: string): ApiKey | KeyProblem | undefined {
    const entry = this.#remembered.get(secret)
    if (entry === undefined) return this.#problemOfForm(secret)
    const now = this.#clock()
    if (now < entry.until && !isExpired(entry.key, now)) return entry.key
    this.#remembered.delete(secret)
    return undefined
  }

  #problemOfForm(secret: string): KeyProblem | undefined {
    if (!isWellFormedKey(secret)) return 'malformed_api_key'
    return environmentOf(secret) === this.#environment ? undefined : 'wrong_environment'
  }

  /** The key, or what is wrong with it, for a secret whose form is right. */
  async find(secret: string): Promise<ApiKey | KeyProblem> {
    const revocations = this.#revocations
    const key = await this.#store.keyByHash(hashKey(secret))
    if (key === undefined) return 'unknown_api_key'
    if (key.revokedAt !== undefined) return 'revoked_api_key'
    const now = this.#clock()
    if (isExpired(key, now)) return 'expired_api_key'
    if (revocations === this.#revocations) this.#remember(secret, key, now)
    return key
  }

  /** Makes the next call of every key ask the store: called wherever a key or an account ends in this process. */
  forgetAll(): void {
    this.#revocations += 1
    this.#remembered.clear()
  }

  #remember(secret: string, key: ApiKey, now: number): void {
    if (this.#remembered.size >= REMEMBERED_KEYS) this.#remembered.clear()
    this.#remembered.set(secret, { key, until: now + REMEMBERED_MS })
  }
}

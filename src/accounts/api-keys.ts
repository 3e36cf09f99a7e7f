// API keys. Their format: a prefix that names the environment, 30 random characters, and a checksum that reveals a typo. The keyring
// finds the key of a request, and caches valid keys for two seconds, so that most requests need no look-up in the store.
import { hash, randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { entryOf } from '../contract/text/entry-of.ts'
import { type ErrorCode, Problem } from '../contract/errors.ts'
import type { Environment } from '../contract/environments.ts'
import type { ApiKey } from '../store/account-store.ts'
import type { Store } from '../store/store.ts'

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const RANDOM_LENGTH = 30
const CHECKSUM_LENGTH = 6
const SHAPE = new RegExp(`^pets_(?:live|test)_[0-9A-Za-z]{${RANDOM_LENGTH + CHECKSUM_LENGTH}}$`)

export const KEY_PREFIX: Record<Environment, string> = { production: 'pets_live_', staging: 'pets_test_' }

export function randomText(length: number): string {
  return Array.from({ length }, () => BASE62[randomInt(BASE62.length)]).join('')
}

/** Derives a text from a seed: the same seed gives the same text, and the text does not reveal the seed. */
export function textFrom(seed: string, length: number): string {
  return base62Digits(BigInt(`0x${hash('sha256', seed)}`), length).join('')
}

export function generateKey(environment: Environment): string {
  const body = KEY_PREFIX[environment] + randomText(RANDOM_LENGTH)
  return body + checksum(body)
}

export function isWellFormedKey(text: string): boolean {
  return SHAPE.test(text) && checksum(text.slice(0, -CHECKSUM_LENGTH)) === text.slice(-CHECKSUM_LENGTH)
}

/** Returns the hash that the store has instead of the key. 178 random bits need no salt and no slow hash. */
export function hashKey(key: string): Buffer {
  return hash('sha256', key, 'buffer')
}

/** Returns the prefix and the last four characters of a key, which people recognise it by. */
export function redacted({ environment, lastFour }: ApiKey): string {
  return `${entryOf(KEY_PREFIX, environment) ?? environment}…${lastFour}`
}

export function stateOf(key: ApiKey, now: number): 'active' | 'revoked' | 'expired' {
  if (key.revokedAt !== undefined) return 'revoked'
  return isExpired(key, now) ? 'expired' : 'active'
}

export function isExpired({ expiresAt }: Pick<ApiKey, 'expiresAt'>, now: number): boolean {
  return expiresAt !== undefined && expiresAt <= now
}

function checksum(body: string): string {
  return base62Digits(BigInt(crc32(body)), CHECKSUM_LENGTH)
    .toReversed()
    .join('')
}

/** Returns the lowest digits of a number, the least significant one first. */
function base62Digits(number: bigint, length: number): string[] {
  return Array.from({ length }, (_, position) => BASE62[Number((number / 62n ** BigInt(position)) % 62n)]!)
}

/** A key that another instance or the command line revoked is refused after at most this time; the documentation promises 5 seconds. */
export const CACHED_MS = 2000
const CACHED_KEYS = 10_000

export type KeyProblem = Extract<
  ErrorCode,
  'malformed_api_key' | 'wrong_environment' | 'unknown_api_key' | 'revoked_api_key' | 'expired_api_key'
>

/** The reason why a key is refused. `key` is set if the store has it: the console shows its owner the failed request. */
export class RefusedKey extends Problem {
  readonly code: KeyProblem
  readonly key: ApiKey | undefined
  constructor(code: KeyProblem, key?: ApiKey) {
    super(code)
    this.code = code
    this.key = key
  }
}

const MALFORMED = new RefusedKey('malformed_api_key')
const OTHER_ENVIRONMENT = new RefusedKey('wrong_environment')
const UNKNOWN = new RefusedKey('unknown_api_key')

export class Keyring {
  readonly #store: Pick<Store, 'accounts'>
  readonly #environment: Environment
  readonly #clock: () => number
  /** Measures the age of cached keys: a wall clock that is set back would keep them for longer. */
  readonly #monotonic: () => number
  /** Counts calls of `forgetAll`: a look-up that began before a revocation must not be cached after it. */
  #revocations = 0
  readonly #cached = new Map<string, { key: ApiKey; until: number }>()
  readonly #lookUps = new Map<string, { found: Promise<ApiKey | RefusedKey>; until: number }>()

  constructor(store: Pick<Store, 'accounts'>, environment: Environment, clock: () => number, monotonic: () => number) {
    this.#store = store
    this.#environment = environment
    this.#clock = clock
    this.#monotonic = monotonic
  }

  /**
   * Returns a cached key, or a refusal if the key is malformed or of the other environment, without a look-up in the store.
   * Returns undefined if `find` must look the key up.
   */
  recall(secret: string): ApiKey | RefusedKey | undefined {
    const entry = this.#cached.get(secret)
    if (entry === undefined) {
      if (!isWellFormedKey(secret)) return MALFORMED
      return secret.startsWith(KEY_PREFIX[this.#environment]) ? undefined : OTHER_ENVIRONMENT
    }
    if (this.#monotonic() < entry.until && !isExpired(entry.key, this.#clock())) return entry.key
    this.#cached.delete(secret)
    return undefined
  }

  /**
   * Looks up a well-formed secret in the store; resolves with its key, or with a refusal. Requests with the same key share a look-up:
   * after an outage, those that have waited would send hundreds before the first request is served.
   */
  find(secret: string): Promise<ApiKey | RefusedKey> {
    const now = this.#monotonic()
    const running = this.#lookUps.get(secret)
    if (running !== undefined && now < running.until) return running.found
    const until = now + CACHED_MS
    const lookUp = { found: this.#lookUp(secret, until), until }
    this.#lookUps.set(secret, lookUp)
    const end = () => this.#lookUps.get(secret) === lookUp && this.#lookUps.delete(secret)
    lookUp.found.then(end, end)
    return lookUp.found
  }

  async #lookUp(secret: string, until: number): Promise<ApiKey | RefusedKey> {
    const revocations = this.#revocations
    const key = await this.#store.accounts.keyByHash(hashKey(secret))
    if (key === undefined) return UNKNOWN
    if (key.revokedAt !== undefined) return new RefusedKey('revoked_api_key', key)
    if (isExpired(key, this.#clock())) return new RefusedKey('expired_api_key', key)
    if (revocations !== this.#revocations) return key
    if (this.#cached.size >= CACHED_KEYS) this.#cached.clear()
    this.#cached.set(secret, { key, until })
    return key
  }

  /** Empties the cache. Called when a process of the instance revokes a key or removes an account. */
  forgetAll(): void {
    this.#revocations += 1
    this.#cached.clear()
    this.#lookUps.clear()
  }
}

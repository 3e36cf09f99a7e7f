// The format of an API key: a prefix that names the environment, 30 random characters, and a checksum that reveals a typo.
import { hash, randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { entryOf } from '../contract/entry-of.ts'
import type { Environment } from '../contract/operations.ts'
import type { ApiKey } from '../store/account-store.ts'

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

/** Checks the format and the checksum, without a look-up in the store. */
export function isWellFormedKey(text: string): boolean {
  return SHAPE.test(text) && checksum(text.slice(0, -CHECKSUM_LENGTH)) === text.slice(-CHECKSUM_LENGTH)
}

/** Returns the environment that a well-formed key belongs to. */
export function environmentOf(key: string): Environment {
  return key.startsWith(KEY_PREFIX.production) ? 'production' : 'staging'
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

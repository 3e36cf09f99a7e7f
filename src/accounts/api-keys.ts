// The format of an API key: a prefix that names the environment, 30 random characters, and a checksum that reveals a typo.
import { createHash, randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'
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
  let rest = BigInt(`0x${createHash('sha256').update(seed).digest('hex')}`)
  return Array.from({ length }, () => {
    const digit = BASE62[Number(rest % 62n)]
    rest /= 62n
    return digit
  }).join('')
}

export function generateKey(environment: Environment): string {
  const body = KEY_PREFIX[environment] + randomText(RANDOM_LENGTH)
  return body + checksum(body)
}

/** Checks the format and the checksum, without the store. */
export function isWellFormedKey(text: string): boolean {
  return SHAPE.test(text) && checksum(text.slice(0, -CHECKSUM_LENGTH)) === text.slice(-CHECKSUM_LENGTH)
}

/** Returns the environment that a well-formed key belongs to. */
export function environmentOf(key: string): Environment {
  return key.startsWith(KEY_PREFIX.production) ? 'production' : 'staging'
}

/** Returns the hash that is stored instead of the key. 178 random bits need no salt and no slow hash. */
export function hashKey(key: string): Buffer {
  return createHash('sha256').update(key).digest()
}

/** Returns the parts of a key that may be shown, so that people can recognise it. */
export function redacted({ environment, lastFour }: ApiKey): string {
  return `${KEY_PREFIX[environment]}…${lastFour}`
}

export function stateOf(key: ApiKey, now: number): 'active' | 'revoked' | 'expired' {
  if (key.revokedAt !== undefined) return 'revoked'
  return isExpired(key, now) ? 'expired' : 'active'
}

export function isExpired({ expiresAt }: Pick<ApiKey, 'expiresAt'>, now: number): boolean {
  return expiresAt !== undefined && expiresAt <= now
}

function checksum(body: string): string {
  let rest = crc32(body)
  let digits = ''
  for (let place = 0; place < CHECKSUM_LENGTH; place += 1) {
    digits = BASE62[rest % BASE62.length] + digits
    rest = Math.floor(rest / BASE62.length)
  }
  return digits
}

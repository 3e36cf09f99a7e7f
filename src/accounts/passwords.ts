// Passwords: what is accepted, and argon2id with a cap on how many are hashed at a time.
import { argon2, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { isCommonPassword } from './common-passwords.ts'

export const PASSWORD_MIN_LENGTH = 12
export const PASSWORD_MAX_LENGTH = 1024

/** 19 MiB and 2 passes, the first choice of OWASP's password storage cheat sheet. */
const COST = { memory: 19_456, passes: 2, parallelism: 1, tagLength: 32 }

/** Each hash takes memory and a thread of Node's small pool, which file access needs too. */
const AT_A_TIME = 2

/** What is wrong with a password somebody chose, as a sentence; undefined where it is fine. */
export function passwordProblem(password: string): string | undefined {
  const length = [...password].length
  if (length < PASSWORD_MIN_LENGTH) {
    return `The password must have at least ${PASSWORD_MIN_LENGTH} characters, got ${length}.`
  }
  if (length > PASSWORD_MAX_LENGTH) {
    return `The password must have at most ${PASSWORD_MAX_LENGTH} characters, got ${length}.`
  }
  if (isCommonPassword(password)) {
    return 'The password is one of the most common ones, which are tried first; choose another, such as a few words that only you would put together.'
  }
  return undefined
}

/** The hash in PHC string format: algorithm, version, cost, salt, tag. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(16)
  const tag = await derive(password, salt, COST)
  const { memory, passes, parallelism } = COST
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${base64(salt)}$${base64(tag)}`
}

/** Without a stored hash it works as long and says no, so that the time does not tell whether an account exists. */
export async function verifyPassword(password: string, stored: string | undefined): Promise<boolean> {
  const parts = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([^$]+)\$([^$]+)$/.exec(stored ?? UNMATCHED)
  if (parts === null) throw new Error('a stored password hash is not in the expected format')
  const [, memory, passes, parallelism, salt = '', tag = ''] = parts
  const expected = Buffer.from(tag, 'base64')
  const cost = { memory: Number(memory), passes: Number(passes), parallelism: Number(parallelism), tagLength: expected.length }
  const actual = await derive(password, Buffer.from(salt, 'base64'), cost)
  return timingSafeEqual(actual, expected) && stored !== undefined
}

const UNMATCHED = `$argon2id$v=19$m=${COST.memory},t=${COST.passes},p=${COST.parallelism}$${base64(Buffer.alloc(16))}$${base64(Buffer.alloc(COST.tagLength))}`

const argon2id = promisify(argon2)

let running = 0
const waiting: (() => void)[] = []

async function derive(password: string, nonce: Buffer, cost: typeof COST): Promise<Buffer> {
  if (running >= AT_A_TIME) await new Promise<void>((resolve) => waiting.push(resolve))
  else running += 1
  try {
    return await argon2id('argon2id', { message: password, nonce, ...cost })
  } finally {
    const next = waiting.shift()
    if (next === undefined) running -= 1
    else next()
  }
}

function base64(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '')
}

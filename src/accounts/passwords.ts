// Checks new passwords, hashes passwords with argon2id, and bounds how many hashes run and wait.
import { argon2, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { readOwnFile } from '../own-files.ts'

export const PASSWORD_MIN_LENGTH = 12
const PASSWORD_MAX_LENGTH = 1024

/** 19 MiB and 2 passes, as OWASP's password storage cheat sheet recommends. */
const COST = { memory: 19_456, passes: 2, parallelism: 1, tagLength: 32 }

/**
 * The most common passwords, which attackers try first. The file has one per line, in lower case, of 12 characters or
 * more: shorter ones are refused for their length. They follow the patterns at the top of published lists of leaked
 * passwords: runs of digits and of keyboard keys; `password`, `admin`, `welcome` and the like followed by digits; names and
 * teams; and the same in a few other languages.
 */
const COMMON = new Set(readOwnFile('accounts/common-passwords.txt').toString().trimEnd().split('\n'))

/** Returns what is wrong with a new password, as a sentence; undefined if it is accepted. */
export function passwordProblem(password: string): string | undefined {
  const length = [...password].length
  if (length < PASSWORD_MIN_LENGTH) {
    return `The password must have at least ${PASSWORD_MIN_LENGTH} characters, got ${length}.`
  }
  if (isTooLongPassword(password)) {
    return `The password must have at most ${PASSWORD_MAX_LENGTH} characters, got ${length}.`
  }
  // Every invalid byte is decoded to this character, so that different passwords would become the same.
  if (password.includes('\uFFFD')) return 'The password has characters that cannot be read. Send it as UTF-8.'
  if (COMMON.has(password.toLowerCase())) {
    return 'This is one of the most common passwords, which attackers try first. Choose another, such as a few unrelated words.'
  }
  return undefined
}

/** Returns whether a password is longer than any account's. */
export function isTooLongPassword(password: string): boolean {
  return [...password].length > PASSWORD_MAX_LENGTH
}

/** Resolves with the hash in PHC string format: algorithm, version, cost, salt, tag. Aborting `signal` ends the wait. */
export async function hashPassword(password: string, signal?: AbortSignal): Promise<string> {
  const salt = randomBytes(16)
  return phc(salt, await derive(password, salt, COST, signal))
}

function phc(salt: Buffer, tag: Buffer): string {
  const { memory, passes, parallelism } = COST
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${base64(salt)}$${base64(tag)}`
}

/** Hashes the password even if `stored` is undefined, so that the time does not reveal whether the account exists. */
export async function verifyPassword(
  password: string,
  stored: string | undefined,
  signal?: AbortSignal,
): Promise<boolean> {
  const parts = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([^$]+)\$([^$]+)$/.exec(stored ?? UNMATCHED)
  if (parts === null) throw new Error('a stored password hash is not in the expected format')
  const [memory, passes, parallelism] = parts.slice(1, 4).map(Number) as [number, number, number]
  const [salt, expected] = parts.slice(4).map((part) => Buffer.from(part, 'base64')) as [Buffer, Buffer]
  const cost = { memory, passes, parallelism, tagLength: expected.length }
  const actual = await derive(password, salt, cost, signal)
  return timingSafeEqual(actual, expected) && stored !== undefined
}

/** The hash that a password is compared with if there is no account. */
const UNMATCHED = phc(Buffer.alloc(16), Buffer.alloc(COST.tagLength))

const argon2id = promisify(argon2)

/** The most hashes that wait. At 30 to 100 ms each, the last one waits for a few seconds. */
export const HASHES_WAITING = 64

/** The queue of hashes is full; a later try may succeed. */
export class TooManyHashes extends Error {
  override name = 'TooManyHashes'
}

/** Runs a few password hashes at a time; the others wait in a bounded queue, unless their client disconnects. */
export class HashQueue {
  /** How many hashes run. Each takes 19 MiB and one of the four threads of Node's pool, which database syncs need too. */
  atATime = 2
  #running = 0
  /** The callbacks that start the waiting hashes, in the order of arrival. */
  readonly #waiting = new Set<() => void>()

  /** Rejects with `TooManyHashes` if the queue is full, and with the signal's reason if it aborts before `work` has started. */
  async run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted()
    if (this.#running < this.atATime) this.#running += 1
    else await this.#waitInQueue(signal)
    try {
      return await work()
    } finally {
      const [next] = this.#waiting
      if (next === undefined) this.#running -= 1
      else next()
    }
  }

  #waitInQueue(signal: AbortSignal | undefined): Promise<void> {
    if (this.#waiting.size >= HASHES_WAITING) throw new TooManyHashes(`${HASHES_WAITING} password hashes are waiting`)
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiting.delete(start)
        reject(signal!.reason as Error)
      }
      const start = () => {
        this.#waiting.delete(start)
        signal?.removeEventListener('abort', leave)
        resolve()
      }
      this.#waiting.add(start)
      signal?.addEventListener('abort', leave, { once: true })
    })
  }
}

/** One queue for the process, because all hashes share its thread pool. */
const queue = new HashQueue()

/** Hashes one password at a time in this process, if the instance has several: they share the machine's cores. */
export function hashSingly(): void {
  queue.atATime = 1
}

function derive(password: string, nonce: Buffer, cost: typeof COST, signal?: AbortSignal): Promise<Buffer> {
  return queue.run(() => argon2id('argon2id', { message: password, nonce, ...cost }), signal)
}

function base64(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '')
}

// The client: one method for each operation of the service.
import {
  BASE_PATH,
  type ListPetsQuery,
  MAX_LIMIT,
  type NewPet,
  OPERATIONS,
  type OperationId,
  type Pet,
} from './contract.ts'
import { checkTimeout } from './deadline.ts'
import type { DeprecationNotice } from './deprecation.ts'
import { parsePage, PetList, type PetPage } from './pet-list.ts'
import { type CallOptions, Transport } from './transport.ts'
import { exactInteger, parse, render } from './wire.ts'

// This file is the entry point of the package; these are its exports.
export type { ErrorCode, ListPetsQuery, NewPet, OperationId, Pet, PetStatus } from './contract.ts'
export type { DeprecationNotice } from './deprecation.ts'
export {
  AuthenticationError,
  type ClientErrorCode,
  InvalidRequestError,
  NetworkError,
  NotFoundError,
  PetstoreError,
  RateLimitError,
  ServerError,
  TimeoutError,
  UnexpectedResponseError,
} from './errors.ts'
export type { PetList, PetPage } from './pet-list.ts'
export type { CallOptions } from './transport.ts'

export interface PetstoreOptions {
  /** From the console or the command line of the service: `pets_live_…` in production, `pets_test_…` in staging. */
  apiKey: string
  /** The base address of the environment; it ends in `/v1`. */
  baseUrl: string | URL
  /** How many milliseconds a call may take, retries included, unless the call has its own `timeout`. Default: 30 000. */
  timeout?: number | undefined
  /** How often a call is retried after transient errors. Default: 3; 0 turns retries off. */
  maxRetries?: number | undefined
  /** Called once for each operation that the service reports as deprecated. Default: `console.warn` with the message. */
  onDeprecation?: ((notice: DeprecationNotice) => void) | undefined
  /** Sends the requests instead of the global `fetch`, for instance through a proxy. */
  fetch?: typeof fetch | undefined
}

export interface CreatePetOptions extends CallOptions {
  /** Makes later calls with the same key safe for 24 hours: they add no second animal. Default: a random key for each call. */
  idempotencyKey?: string | undefined
}

export class Petstore implements Record<OperationId, (...parameters: never[]) => unknown> {
  readonly baseUrl: string
  readonly #transport: Transport

  constructor({ apiKey, baseUrl, timeout = 30_000, maxRetries = 3, onDeprecation = warn, fetch }: PetstoreOptions) {
    checkApiKey(apiKey)
    checkTimeout(timeout)
    if (!(maxRetries >= 0)) throw new RangeError(`maxRetries must be 0 or more, got ${String(maxRetries)}.`)
    this.baseUrl = readBaseUrl(baseUrl)
    this.#transport = new Transport(apiKey, {
      baseUrl: this.baseUrl,
      timeout,
      maxRetries,
      onDeprecation,
      fetch: fetch ?? ((input, init) => globalThis.fetch(input, init)),
    })
  }

  /**
   * Lists animals, newest first. `await` returns one page; `for await` iterates over all animals from the cursor on,
   * page by page. `limit` is the size of a page; the default is 20 if awaited, 100 if iterated.
   * A `timeout` applies to each page.
   */
  listPets(query: ListPetsQuery = {}, options: CallOptions = {}): PetList {
    const fetchPage = async (cursor: string | undefined, all: boolean): Promise<PetPage> => {
      const path =
        OPERATIONS.listPets.path + searchOf({ ...query, limit: query.limit ?? (all ? MAX_LIMIT : undefined), cursor })
      return this.#transport.call('listPets', { path, parse: (answer) => parsePage(answer, cursor) }, options)
    }
    return new PetList(fetchPage, query.cursor)
  }

  /** Adds an animal and returns it with its id. Retries never add a second animal. */
  async createPet(pet: NewPet, { idempotencyKey = randomKey(), ...options }: CreatePetOptions = {}): Promise<Pet> {
    const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': idempotencyKey }
    const { path } = OPERATIONS.createPet
    return this.#transport.call(
      'createPet',
      { path, headers, body: render('NewPet', pet), parse: ({ value }) => parse('Pet', value) },
      options,
    )
  }

  /**
   * Returns one animal; throws a NotFoundError if there is none with this id.
   * @deprecated The service removes this operation on 5 December 2030. Use `listPets` with a `status`.
   */
  async getPet(id: number | bigint, options: CallOptions = {}): Promise<Pet> {
    const path = OPERATIONS.getPet.path.replace('{petId}', String(exactInteger('id', id)))
    return this.#transport.call('getPet', { path, parse: ({ value }) => parse('Pet', value) }, options)
  }
}

/** Throws a TypeError if this cannot be a key. Never quotes the key: errors end up in logs. */
function checkApiKey(apiKey: string): void {
  if (typeof apiKey !== 'string' || apiKey === '')
    throw new TypeError('apiKey is missing: generate one in the console of the service.')
  if (!/^[!-~]+$/.test(apiKey))
    throw new TypeError('apiKey contains white space, a line break or a character that is not ASCII.')
}

function readBaseUrl(baseUrl: string | URL): string {
  if (!URL.canParse(baseUrl))
    throw new TypeError(`baseUrl must be an absolute address that ends in ${BASE_PATH}, got ${shown(baseUrl)}.`)
  const { protocol, username, password, origin, pathname, search, hash } = new URL(baseUrl)
  if (username !== '' || password !== '') throw new TypeError('baseUrl must not contain a user name or password.')
  const path = pathname.replace(/\/$/, '')
  if (/^https?:$/.test(protocol) && path.endsWith(BASE_PATH) && search === '' && hash === '') return origin + path
  throw new TypeError(`baseUrl must be an http or https address that ends in ${BASE_PATH}, got ${shown(baseUrl)}.`)
}

/** Returns a base address as error messages quote it. Hides one that may contain a password. */
function shown(baseUrl: string | URL): string {
  return /@|%40|:(?!\/\/|[0-9]{1,5}(?!\w))|(?:password|pwd|secret|token)\w*=/i.test(String(baseUrl))
    ? 'one that may contain a password'
    : `"${String(baseUrl)}"`
}

/** Throws a TypeError for a number that is not a safe integer, as for an animal's. */
function searchOf(query: ListPetsQuery): string {
  const given = Object.entries(query).flatMap(([name, value]: [string, string | number | bigint | undefined]) =>
    value === undefined ? [] : [[name, typeof value === 'string' ? value : String(exactInteger(name, value))]],
  )
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`
}

/** Returns 128 random bits. Does not use crypto.randomUUID, which browsers offer only over HTTPS. */
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

function warn({ message }: DeprecationNotice): void {
  // oxlint-disable-next-line no-console -- every runtime has it, and no other channel for warnings
  console.warn(message)
}

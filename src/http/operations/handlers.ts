// What each operation does, and how it reads its query and its Idempotency-Key. An operation without a handler does not compile.
import { hash } from 'node:crypto'
import { Refusal, Problem } from '../../contract/errors.ts'
import { int64FromText } from '../../contract/int64.ts'
import { quote } from '../../contract/json.ts'
import { IDEMPOTENCY, RETRY_AFTER } from '../../contract/limits.ts'
import { nextPageQuery, parseListQuery } from '../../contract/list-query.ts'
import { BASE_PATH, type OperationId, petsHaveAddress } from '../../contract/operations.ts'
import { idOfRendered, lastRendered, type NewPet, parseNewPet, renderPet } from '../../contract/pets.ts'
import { redactSecrets } from '../../contract/text/redact.ts'
import { idempotencyFor } from '../../store/idempotency.ts'
import type { Created, Store } from '../../store/store.ts'
import { jsonContent } from '../answers/content.ts'
import { type AnswerCache, cachedRead, type Read, rendered } from '../answers/answer-cache.ts'
import { readJsonBody } from '../body.ts'
import type { Call, Handler, Result } from '../call/call.ts'
import { cameTwice } from '../call/framing.ts'

type Handlers = Record<OperationId, Handler>

/** Links are relative if no `baseUrl` is configured. */
export function createHandlers(
  store: Store,
  cache: AnswerCache,
  clock: () => number,
  baseUrl: string | undefined,
): Handlers {
  const base = baseUrl ?? BASE_PATH
  return {
    listPets: cachedRead(cache, listPets(store, base)),
    createPet: createPet(store, clock, base),
    getPet: cachedRead(cache, getPet(store)),
  }
}

/** Returns a page of animals, newest first (spec, section 4.1). */
function listPets(store: Store, base: string): Read {
  return async (route) => {
    // Takes half the time of node:querystring.
    const query = parseListQuery(new URLSearchParams(route.query))
    if (query instanceof Problem) return new Refusal('invalid_parameter', query.message)
    // Reads one animal more than requested, to see whether another page follows.
    const { json, count } = await store.pets.list({ ...query, limit: query.limit + 1 }, 'json')
    if (count <= query.limit) return rendered(route, `[${json}]`)
    const page = json.slice(0, lastRendered(json) - 1)
    const next = nextPageQuery(query, idOfRendered(page, lastRendered(page)))
    return rendered(route, `[${page}]`, ['Link', `<${base}/pets?${next}>; rel="next"`])
  }
}

/** Adds an animal; safe to retry with an Idempotency-Key (spec, section 4.2). */
function createPet(store: Store, clock: () => number, base: string): Handler {
  return async (call) => {
    const key = readIdempotencyKey(call)
    if (key instanceof Refusal) return key
    const newPet = await readJsonBody<NewPet>(call, parseNewPet)
    if (newPet instanceof Refusal) return newPet
    const caller = call.caller!
    const now = clock()
    const record = key === undefined ? undefined : idempotencyFor(caller.accountId, key, newPet, now)
    return createdAnswer(await store.pets.create(newPet, record, { at: now, by: caller.id }))
  }

  function createdAnswer(created: Created): Result {
    if (created.outcome === 'mismatch') {
      return new Refusal(
        'idempotency_key_reused',
        'This Idempotency-Key was used for a different animal; use a new one.',
      )
    }
    if (created.outcome === 'in progress') {
      const message = 'The first request with this Idempotency-Key is still running; send this one again shortly.'
      return new Refusal('idempotency_in_progress', message, ['Retry-After', String(RETRY_AFTER.inProgress)])
    }
    const { headers, body } = jsonContent(renderPet(created.pet))
    if (petsHaveAddress(clock())) headers.push('Location', `${base}/pets/${created.pet.id}`)
    if (created.outcome === 'replayed') headers.push('Idempotent-Replayed', 'true')
    return { status: 201, headers, body }
  }
}

/** Returns one animal by its identifier (spec, section 4.3). Deprecated. */
function getPet(store: Store): Read {
  return async (route) => {
    const petId = route.parameters['petId']!
    const id = int64FromText(petId)
    const pet = id === undefined ? undefined : await store.pets.get(id)
    return pet === undefined
      ? new Refusal('pet_not_found', `No animal has the id ${quote(petId)}.`)
      : rendered(route, renderPet(pet))
  }
}

/** Returns the Idempotency-Key without its quotes, or undefined if none was sent. A key that holds a secret is returned as its hash. */
export function readIdempotencyKey(call: Call): string | undefined | Refusal {
  const header = call.request.headers['idempotency-key']
  if (header === undefined) return undefined
  if (cameTwice(call, 'idempotency-key')) return invalidKey('The Idempotency-Key header was sent twice; send it once.')
  const text = String(header)
  // The longest key has every character escaped, and two quotes.
  if (text.length > 2 * IDEMPOTENCY.keyMaxLength + 2) return wrongLength(text.length)
  const quoted = /^"((?:[^"\\]|\\["\\])*)"$/.exec(text)?.[1]
  const key = quoted === undefined ? text : quoted.replaceAll(/\\(["\\])/g, '$1')
  if (key.length === 0 || key.length > IDEMPOTENCY.keyMaxLength) return wrongLength(key.length)
  return redactSecrets(key) === key ? key : `sha256:${hash('sha256', key)}`
}

function wrongLength(length: number): Refusal {
  return invalidKey(`The Idempotency-Key must have 1 to ${IDEMPOTENCY.keyMaxLength} characters, got ${length}.`)
}

function invalidKey(message: string): Refusal {
  return new Refusal('invalid_idempotency_key', message)
}

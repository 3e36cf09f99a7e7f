// What each operation does. The type makes it complete: an operation without a handler does not compile.
import { Refusal, Refused } from '../contract/errors.ts'
import { int64FromText } from '../contract/int64.ts'
import { quote } from '../contract/json.ts'
import { RETRY_AFTER } from '../contract/limits.ts'
import { nextPageQuery, parseListQuery } from '../contract/list-query.ts'
import { BASE_PATH, type OperationId, petsHaveAddress } from '../contract/operations.ts'
import { parseNewPet, renderPet, renderPets } from '../contract/pets.ts'
import { idempotencyFor } from '../store/idempotency.ts'
import type { Created, Store } from '../store/store.ts'
import { jsonContent } from './answer.ts'
import { type AnswerCache, cachedRead, type Read, rendered } from './answer-cache.ts'
import type { Handler, Result } from './call.ts'
import { parseQueryString, readIdempotencyKey, readJsonBody } from './content.ts'

export type Handlers = Record<OperationId, Handler>

/** Without a configured public base address, `baseUrl`, links are relative. */
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
    const query = parseListQuery(parseQueryString(route.query))
    if (query instanceof Refused) return new Refusal('invalid_parameter', query.message)
    // One animal more than asked for shows whether a page follows.
    const found = await store.pets.list({ ...query, limit: query.limit + 1 })
    const page = found.slice(0, query.limit)
    const json = renderPets(page)
    if (found.length === page.length) return rendered(route, json)
    return rendered(route, json, ['Link', `<${base}/pets?${nextPageQuery(query, page.at(-1)!.id)}>; rel="next"`])
  }
}

/** Adds an animal; safe to retry with an Idempotency-Key (spec, section 4.2). */
function createPet(store: Store, clock: () => number, base: string): Handler {
  return async (call) => {
    const idempotency = readIdempotencyKey(call)
    if (idempotency instanceof Refusal) return idempotency
    const newPet = await readJsonBody(call, parseNewPet)
    if (newPet instanceof Refusal) return newPet
    const { key } = idempotency
    const record = key === undefined ? undefined : idempotencyFor(call.caller!.accountId, key, newPet, clock())
    return createdAnswer(await store.pets.create(newPet, record))
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

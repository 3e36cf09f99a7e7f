// The three operations: from a checked request to the store, and up again as an answer.
import type { FastifyRequest } from 'fastify'
import { isRefusal, type Refusal } from '../contract/errors.ts'
import { int64FromText } from '../contract/int64.ts'
import { quote } from '../contract/json.ts'
import { type ListQuery, nextPageQuery, parseListQuery, type RawQuery } from '../contract/list-query.ts'
import { BASE_PATH, type Operation, petsHaveAddress } from '../contract/operations.ts'
import { renderPet, renderPets } from '../contract/pets.ts'
import { onceFor } from '../store/once.ts'
import type { Created, PetStore } from '../store/store.ts'
import { JSON_TYPE } from './answer.ts'
import type { Answer } from './call.ts'
import { etagOf, matchesEtag } from './conditional.ts'
import { readIdempotencyKey } from './idempotency.ts'
import { readNewPet } from './new-pet-body.ts'

export interface PetsParts {
  pets: PetStore
  clock: () => number
  /** The deployment's public base address, where it was told; else links are relative. */
  baseUrl: string | undefined
}

type Handler = (request: FastifyRequest) => Promise<Answer | Refusal>

export function createHandlers({ pets, clock, baseUrl = BASE_PATH }: PetsParts): Record<Operation['id'], Handler> {
  async function listPets(request: FastifyRequest): Promise<Answer | Refusal> {
    const parsed = parseListQuery(request.query as RawQuery)
    if ('problem' in parsed) return { code: 'invalid_parameter', message: parsed.problem }
    return unlessKnown(request, await renderPage(parsed.query))
  }

  /** One animal more than asked for tells whether a page follows. */
  async function renderPage(query: ListQuery): Promise<{ body: Buffer; headers: string[]; etag: string }> {
    const found = await pets.list({ ...query, limit: query.limit + 1 })
    const page = found.slice(0, query.limit)
    const body = Buffer.from(renderPets(page))
    const etag = etagOf(body)
    if (found.length === page.length) return { body, etag, headers: [] }
    const next = `${baseUrl}/pets?${nextPageQuery(query, page.at(-1)!.id)}`
    return { body, etag, headers: ['Link', `<${next}>; rel="next"`] }
  }

  async function createPet(request: FastifyRequest): Promise<Answer | Refusal> {
    const idempotency = readIdempotencyKey(request)
    if (isRefusal(idempotency)) return idempotency
    const newPet = readNewPet(request)
    if (isRefusal(newPet)) return newPet
    const { key } = idempotency
    const once = key === undefined ? undefined : onceFor(request.caller!.accountId, key, newPet, clock())
    return createdAnswer(await pets.create(newPet, once))
  }

  function createdAnswer(created: Created): Answer | Refusal {
    if (created.outcome === 'mismatch') {
      return { code: 'idempotency_key_reused', message: 'This Idempotency-Key was used for a different animal; use a new one.' }
    }
    if (created.outcome === 'in progress') {
      const message = 'The first request with this Idempotency-Key is still running; send this one again shortly.'
      return { code: 'idempotency_in_progress', message, headers: ['Retry-After', '1'] }
    }
    const headers = [...JSON_TYPE]
    if (petsHaveAddress(clock())) headers.push('Location', `${baseUrl}/pets/${created.pet.id}`)
    if (created.outcome === 'replayed') headers.push('Idempotent-Replayed', 'true')
    return { status: 201, headers, body: renderPet(created.pet) }
  }

  async function getPet(request: FastifyRequest): Promise<Answer | Refusal> {
    const { petId = '' } = request.params as { petId?: string }
    const id = int64FromText(petId)
    const pet = id === undefined ? undefined : await pets.get(id)
    if (pet === undefined) return { code: 'pet_not_found', message: `No animal has the id ${quote(petId)}.` }
    const body = renderPet(pet)
    return unlessKnown(request, { body, etag: etagOf(body), headers: [] })
  }

  return { listPets, createPet, getPet }
}

interface Content {
  body: string | Buffer
  etag: string
  headers: readonly string[]
}

function unlessKnown(request: FastifyRequest, { body, etag, headers }: Content): Answer {
  if (matchesEtag(request.raw.headers['if-none-match'], etag)) {
    return { status: 304, headers: ['ETag', etag, ...headers], body: undefined }
  }
  return { status: 200, headers: [...JSON_TYPE, 'ETag', etag, ...headers], body }
}

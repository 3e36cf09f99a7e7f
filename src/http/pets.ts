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
import { jsonContent } from './answer.ts'
import type { Answer } from './call.ts'
import { etagOf, unlessKnown } from './conditional.ts'
import { readIdempotencyKey } from './idempotency.ts'
import { readNewPet } from './new-pet-body.ts'
import type { Page, PageCache } from './page-cache.ts'

export interface PetsParts {
  pets: PetStore
  pages: PageCache
  clock: () => number
  /** The deployment's public base address, where it was told; else links are relative. */
  baseUrl: string | undefined
}

type Handler = (request: FastifyRequest) => Promise<Answer | Refusal>

export function createHandlers({ pets, pages, clock, baseUrl = BASE_PATH }: PetsParts): Record<Operation['id'], Handler> {
  async function listPets(request: FastifyRequest): Promise<Answer | Refusal> {
    const parsed = parseListQuery(request.query as RawQuery)
    if ('problem' in parsed) return { code: 'invalid_parameter', message: parsed.problem }
    return pageAnswer(request, await renderList(parsed.query))
  }

  /** One animal more than asked for tells whether a page follows. */
  async function renderList(query: ListQuery): Promise<Rendered> {
    const found = await pets.list({ ...query, limit: query.limit + 1 })
    const page = found.slice(0, query.limit)
    const json = renderPets(page)
    if (found.length === page.length) return { json, headers: [] }
    const next = `${baseUrl}/pets?${nextPageQuery(query, page.at(-1)!.id)}`
    return { json, headers: ['Link', `<${next}>; rel="next"`] }
  }

  /** Keeps the page for who asks next. */
  function pageAnswer(request: FastifyRequest, { json, headers: own }: Rendered): Answer {
    const etag = etagOf(json)
    const headers = ['ETag', etag, ...own]
    const content = jsonContent(json)
    const page: Page = { operation: request.operation!, body: content.body, etag, headers, contentHeaders: [...content.headers, ...headers] }
    pages.keep(request.raw.url!, request.version, page)
    return unlessKnown(request, page)
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
    const { headers, body } = jsonContent(renderPet(created.pet))
    if (petsHaveAddress(clock())) headers.push('Location', `${baseUrl}/pets/${created.pet.id}`)
    if (created.outcome === 'replayed') headers.push('Idempotent-Replayed', 'true')
    return { status: 201, headers, body }
  }

  async function getPet(request: FastifyRequest): Promise<Answer | Refusal> {
    const { petId = '' } = request.params as { petId?: string }
    const id = int64FromText(petId)
    const pet = id === undefined ? undefined : await pets.get(id)
    if (pet === undefined) return { code: 'pet_not_found', message: `No animal has the id ${quote(petId)}.` }
    return pageAnswer(request, { json: renderPet(pet), headers: [] })
  }

  return { listPets, createPet, getPet }
}

interface Rendered {
  json: string
  headers: readonly string[]
}

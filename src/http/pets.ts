// The three operations: from a checked request to the store, and up again as an answer.
import { parse } from 'node:querystring'
import { isRefusal, type Refusal } from '../contract/errors.ts'
import { int64FromText } from '../contract/int64.ts'
import { quote } from '../contract/json.ts'
import { type ListQuery, nextPageQuery, parseListQuery } from '../contract/list-query.ts'
import { BASE_PATH, type Operation, petsHaveAddress } from '../contract/operations.ts'
import { renderPet, renderPets } from '../contract/pets.ts'
import { idempotencyFor } from '../store/idempotency.ts'
import type { Created, PetStore } from '../store/store.ts'
import { jsonContent } from './answer.ts'
import type { Answer, OperationCall, Route } from './call.ts'
import { etagOf, unlessKnown } from './conditional.ts'
import { readIdempotencyKey } from './idempotency.ts'
import { parsePetBody, readJson } from './new-pet-body.ts'
import type { Page, PageCache } from './page-cache.ts'

export interface PetsParts {
  pets: PetStore
  pages: PageCache
  clock: () => number
  /** The deployment's public base address, where it was told; else links are relative. */
  baseUrl: string | undefined
}

/** Of many parameters Node would read only the first thousand; and what can't be decoded is told as it came. */
const QUERY_FORM = { maxKeys: 0, decodeURIComponent: decodeOrKeep }

function decodeOrKeep(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

type Handler = (call: OperationCall) => Promise<Answer | Refusal>
export type Handlers = Record<Operation['id'], Handler>

export function createHandlers({ pets, pages, clock, baseUrl = BASE_PATH }: PetsParts): Handlers {
  async function listPets(route: Route): Promise<Page | Refusal> {
    const parsed = parseListQuery(parse(route.query, '&', '=', QUERY_FORM))
    if ('problem' in parsed) return { code: 'invalid_parameter', message: parsed.problem }
    return pageOf(route, await renderList(parsed.query))
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

  async function createPet(call: OperationCall): Promise<Answer | Refusal> {
    const body = await readJson(call.raw)
    if (isRefusal(body)) return body
    const sent = readIdempotencyKey(call)
    if (isRefusal(sent)) return sent
    const newPet = parsePetBody(call, body)
    if (isRefusal(newPet)) return newPet
    const { key } = sent
    const idempotency = key === undefined ? undefined : idempotencyFor(call.caller!.accountId, key, newPet, clock())
    return createdAnswer(await pets.create(newPet, idempotency))
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

  async function getPet(route: Route): Promise<Page | Refusal> {
    const petId = route.parameter!
    const id = int64FromText(petId)
    const pet = id === undefined ? undefined : await pets.get(id)
    if (pet === undefined) return { code: 'pet_not_found', message: `No animal has the id ${quote(petId)}.` }
    return pageOf(route, { json: renderPet(pet), headers: [] })
  }

  const answerWith = (readPage: (route: Route) => Promise<Page | Refusal>) => async (call: OperationCall) => {
    const page = await pages.read(call.raw.url!, call.version, () => readPage(call.route))
    return isRefusal(page) ? page : unlessKnown(call, page)
  }

  return { listPets: answerWith(listPets), createPet, getPet: answerWith(getPet) }
}

function pageOf(route: Route, { json, headers: own }: Rendered): Page {
  const etag = etagOf(json)
  const headers = ['ETag', etag, ...own]
  const content = jsonContent(json)
  return { route, body: content.body, etag, headers, contentHeaders: [...content.headers, ...headers] }
}

interface Rendered {
  json: string
  headers: readonly string[]
}

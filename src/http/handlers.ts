// Which function handles which operation. The type makes it complete: an operation without a handler does not compile.
import { BASE_PATH, type OperationId } from '../contract/operations.ts'
import type { Store } from '../store/store.ts'
import { type AnswerCache, cachedRead } from './answer-cache.ts'
import { createPet } from './create-pet.ts'
import { getPet } from './get-pet.ts'
import type { Handler, HandlerParts } from './handler.ts'
import { listPets } from './list-pets.ts'

export type Handlers = Record<OperationId, Handler>

export interface HandlersParts {
  store: Store
  cache: AnswerCache
  clock: () => number
  baseUrl: string | undefined
}

export function createHandlers({ store, cache, clock, baseUrl }: HandlersParts): Handlers {
  const parts: HandlerParts = { store, clock, base: baseUrl ?? BASE_PATH }
  return {
    listPets: cachedRead(cache, listPets(parts)),
    createPet: createPet(parts),
    getPet: cachedRead(cache, getPet(parts)),
  }
}

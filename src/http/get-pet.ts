// getPet: one animal by its identifier (spec, section 4.3). Deprecated.
import { Refusal } from '../contract/errors.ts'
import { int64FromText } from '../contract/int64.ts'
import { quote } from '../contract/json.ts'
import { renderPet } from '../contract/pets.ts'
import { type Read, rendered } from './answer-cache.ts'
import type { HandlerParts } from './handler.ts'

export function getPet({ store }: HandlerParts): Read {
  return async (route) => {
    const petId = route.parameters['petId']!
    const id = int64FromText(petId)
    const pet = id === undefined ? undefined : await store.pets.get(id)
    return pet === undefined
      ? new Refusal('pet_not_found', `No animal has the id ${quote(petId)}.`)
      : rendered(route, renderPet(pet))
  }
}

// createPet: adds an animal; safe to retry with an Idempotency-Key (spec, section 4.2).
import { Refusal, Refused } from '../contract/errors.ts'
import { RETRY_AFTER } from '../contract/limits.ts'
import { petsHaveAddress } from '../contract/operations.ts'
import { parseNewPet, renderPet } from '../contract/pets.ts'
import { idempotencyFor } from '../store/idempotency.ts'
import type { Created } from '../store/store.ts'
import { jsonContent } from './answer.ts'
import { checkBodySize, readBody } from './body.ts'
import type { Answer } from './call.ts'
import type { Handler, HandlerParts } from './handler.ts'
import { readIdempotencyKey } from './idempotency.ts'
import { checkJsonHeaders, parseJsonBody } from './json-body.ts'

export function createPet({ store, clock, base }: HandlerParts): Handler {
  return async (call) => {
    const refusal = checkJsonHeaders(call) ?? checkBodySize(call.raw)
    if (refusal !== undefined) return refusal
    const idempotency = readIdempotencyKey(call)
    if (idempotency instanceof Refusal) return idempotency
    const bytes = await readBody(call.raw)
    if (bytes instanceof Refusal) return bytes
    const json = parseJsonBody(bytes)
    if (json instanceof Refusal) return json
    const newPet = parseNewPet(json.value)
    if (newPet instanceof Refused) return new Refusal('invalid_pet', newPet.message)
    const { key } = idempotency
    const record = key === undefined ? undefined : idempotencyFor(call.caller!.accountId, key, newPet, clock())
    return createdAnswer(await store.pets.create(newPet, record))
  }

  function createdAnswer(created: Created): Answer | Refusal {
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

// Checks the API key in Authorization: Bearer <API_KEY>; answers 401 (spec, section 5), in the words of contract/errors.ts.
import { type Keyring, type KeyProblem, RefusedKey } from '../../accounts/api-keys.ts'
import { ERRORS, type ErrorCode, Refusal } from '../../contract/errors.ts'
import type { ApiKey } from '../../store/account-store.ts'
import type { Call, Step } from '../call/call.ts'
import { cameTwice } from '../call/framing.ts'

const CHALLENGE = 'Bearer realm="petstore"'
const INVALID_TOKEN = `${CHALLENGE}, error="invalid_token"`

/** Created once, so that each answer is rendered once (content.ts). */
const REFUSALS = {
  missing_api_key: refuse('missing_api_key', CHALLENGE),
  malformed_authorization: refuse('malformed_authorization', CHALLENGE),
  malformed_api_key: refuse('malformed_api_key', INVALID_TOKEN),
  wrong_environment: refuse('wrong_environment', INVALID_TOKEN),
  unknown_api_key: refuse('unknown_api_key', INVALID_TOKEN),
  revoked_api_key: refuse('revoked_api_key', INVALID_TOKEN),
  expired_api_key: refuse('expired_api_key', INVALID_TOKEN),
} satisfies Record<KeyProblem | 'missing_api_key' | 'malformed_authorization', Refusal>

/** Checks the key of any request. */
export type Authenticate = (call: Call) => ReturnType<Step>

/** Sets `call.caller`, or refuses. */
export function createAuthenticate(keyring: Keyring): Authenticate {
  return (call) => {
    const header = call.request.headers.authorization
    if (header === undefined) return REFUSALS.missing_api_key
    // What follows the scheme, which may be in any case (RFC 9110), if that is one word.
    const secret = /^bearer +(\S+)$/i.exec(header)?.[1]
    if (secret === undefined || cameTwice(call, 'authorization')) return REFUSALS.malformed_authorization
    const known = keyring.recall(secret)
    if (known === undefined) return keyring.find(secret).then((found) => admit(call, found))
    return admit(call, known)
  }
}

function admit(call: Call, found: ApiKey | RefusedKey): Refusal | undefined {
  if (found instanceof RefusedKey) {
    call.refusedKey = found.key
    return REFUSALS[found.code]
  }
  call.caller = found
  return undefined
}

function refuse(code: ErrorCode, challenge: string): Refusal {
  return new Refusal(code, `${ERRORS[code].cause} ${ERRORS[code].fix}`, ['WWW-Authenticate', challenge])
}

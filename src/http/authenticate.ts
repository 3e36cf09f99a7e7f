// Why a 401? The key check: an API key as Authorization: Bearer <API_KEY> (spec, section 5).
import type { Keyring, KeyProblem } from '../accounts/keyring.ts'
import { ERRORS, type ErrorCode, type Refusal } from '../contract/errors.ts'
import type { ApiKey } from '../store/store.ts'
import { type Call, cameTwice, type Step } from './call.ts'

const CHALLENGE = ['WWW-Authenticate', 'Bearer realm="petstore"']
const INVALID_TOKEN = ['WWW-Authenticate', 'Bearer realm="petstore", error="invalid_token"']

/** Sets `request.caller`, or refuses. */
export function createAuthenticate(keyring: Keyring): Step {
  return (request) => {
    const header = request.raw.headers.authorization
    if (header === undefined) return refuse('missing_api_key', CHALLENGE)
    const secret = bearerSecret(header)
    if (secret === undefined || cameTwice(request, 'authorization')) return refuse('malformed_authorization', CHALLENGE)
    const known = keyring.recall(secret)
    if (known === undefined) return keyring.find(secret).then((found) => admit(request, found))
    return admit(request, known)
  }
}

/** The scheme is compared without case (RFC 9110); what follows it is one word. */
function bearerSecret(header: string): string | undefined {
  return /^bearer +(\S+)$/i.exec(header)?.[1]
}

function admit(request: Call, found: ApiKey | KeyProblem): Refusal | undefined {
  if (typeof found === 'string') return refuse(found, INVALID_TOKEN)
  request.caller = found
  return undefined
}

function refuse(code: ErrorCode, headers: readonly string[]): Refusal {
  return { code, message: `${ERRORS[code].cause} ${ERRORS[code].cure}`, headers }
}

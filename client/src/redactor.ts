// Removes the API key from everything that the client hands out and that people log. A server or a proxy may echo the
// key in any header or body, and fetch in what it throws. Runs on the finished text, after all decoding.
import type { DeprecationNotice } from './deprecation.ts'
import type { PetstoreError } from './errors.ts'

const REPLACEMENT = '[apiKey]'

/** A shorter key is a placeholder, not a secret. Replacing it would garble codes: invalid_pet with the key "pet". */
const SHORTEST_SECRET = 8

/** What says why a request failed. Other fields are left out: Node keeps a piece of a malformed response, which may begin within the key. */
const KEPT_FIELDS = [
  'name',
  'message',
  'stack',
  'cause',
  'errors',
  'code',
  'errno',
  'syscall',
  'hostname',
  'address',
  'port',
]

export class Redactor {
  // Private to the language, as the key itself is.
  readonly #key: RegExp

  constructor(apiKey: string) {
    // Ignores case: hexadecimal digits come in both, and a URL puts its host into lower case.
    this.#key = apiKey.length < SHORTEST_SECRET ? /(?!)/g : new RegExp(Array.from(apiKey, anyFormOf).join(''), 'gi')
  }

  text(text: string): string {
    return text.replaceAll(this.#key, REPLACEMENT)
  }

  optional(text: string | undefined): string | undefined {
    return text === undefined ? undefined : this.text(text)
  }

  notice(notice: DeprecationNotice): DeprecationNotice {
    return { ...notice, documentation: this.optional(notice.documentation), message: this.text(notice.message) }
  }

  /** Returns an error of the same class. */
  error(error: PetstoreError): PetstoreError {
    const { code, message, status, requestId, retryAfter, cause } = error
    const ErrorClass = error.constructor as typeof PetstoreError
    return new ErrorClass({
      code: this.text(code),
      message: this.text(message),
      status,
      requestId: this.optional(requestId),
      retryAfter,
      cause: this.#copy(cause, new Map()),
    })
  }

  /** Copies what fetch threw, since the original is not the client's to change. Leaves out objects that are not errors. */
  #copy(value: unknown, copies: Map<object, Error>): unknown {
    if (typeof value === 'string') return this.text(value)
    if (Array.isArray(value)) return value.map((item) => this.#copy(item, copies))
    if (typeof value !== 'object' || value === null) return typeof value === 'function' ? undefined : value
    // Not instanceof: an error of another realm is an error too.
    if (!('message' in value)) return undefined
    const known = copies.get(value)
    if (known !== undefined) return known
    const error = new Error()
    copies.set(value, error)
    for (const field of KEPT_FIELDS) {
      const copy = this.#copy((value as Record<string, unknown>)[field], copies)
      const enumerable = Object.prototype.propertyIsEnumerable.call(value, field)
      if (copy !== undefined)
        Object.defineProperty(error, field, { value: copy, enumerable, writable: true, configurable: true })
    }
    return error
  }
}

/**
 * Returns a pattern of a character: plain, percent-encoded (%70, or %2570 if encoded again, and so on), or with a JSON
 * escape (\u0070, with more backslashes if quoted again; in a URL they become slashes).
 */
function anyFormOf(character: string): string {
  const hex = character.charCodeAt(0).toString(16)
  const percent = '%(?:25)*'
  return `(?:\\u00${hex}|${percent}(?:u00)?${hex}|(?:[\\\\/]|${percent}5c){1,8}u00${hex})`
}

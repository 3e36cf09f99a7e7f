// Removes the API key from the errors and notices of the client, which callers log. A server or a proxy may echo the key in
// any header or body, and fetch may put it into an error. Runs on the finished text, after all decoding.
import type { DeprecationNotice } from './deprecation.ts'
import type { PetstoreError } from './errors.ts'

const REPLACEMENT = '[apiKey]'

/** A shorter key is a placeholder, not a secret. Replacing it would garble texts: the key "pet" occurs in the code invalid_pet. */
const SHORTEST_SECRET = 8

/** The fields that say why a request failed. Others are dropped: Node adds a piece of a response, which may begin within the key. */
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
  // A #private field, because the pattern contains the key: neither console.log nor JSON.stringify shows it.
  readonly #key: RegExp

  constructor(apiKey: string) {
    // Ignores case: hexadecimal digits have two cases, and the host of a URL is converted to lower case.
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

  /** Returns a copy of the error, of the same class, without the key. */
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

  /** Copies an error that fetch threw, because the client must not change the original. Drops objects that are not errors. */
  #copy(value: unknown, copies: Map<object, Error>): unknown {
    if (typeof value === 'string') return this.text(value)
    if (Array.isArray(value)) return value.map((item) => this.#copy(item, copies))
    if (typeof value !== 'object' || value === null) return typeof value === 'function' ? undefined : value
    // Does not use instanceof, which fails for errors of another realm.
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
 * Returns a pattern that matches a character: plain, percent-encoded (%70, or %2570 if encoded again, and so on), or with a JSON
 * escape (\u0070, with more backslashes if quoted again; in a URL they become slashes).
 */
function anyFormOf(character: string): string {
  const hex = character.charCodeAt(0).toString(16)
  const percent = '%(?:25)*'
  return `(?:\\u00${hex}|${percent}(?:u00)?${hex}|(?:[\\\\/]|${percent}5c){1,8}u00${hex})`
}

// Removes secrets from a text before it is logged, stored or put into a message: a client may send a secret in any field.

/** An API key, or the beginning of one. */
const KEY = /pets_(live|test)_\w+/g
/** An API key whose prefix is missing or misspelt: 36 characters of base62. */
const BARE_KEY = /(?<![0-9A-Za-z])[0-9A-Za-z]{36}(?![0-9A-Za-z])/g
/** 43 characters of base64url. */
const SESSION_TOKEN = /(?<![\w-])[\w-]{43}(?![\w-])/g

/** Shorter words can't contain a secret. */
const SHORTEST = 'pets_live_x'.length

/** Redacts keys and session tokens, even if they are percent-encoded several times. Leaves every other word unchanged. */
export function redactSecrets(text: string): string {
  return text.replaceAll(/[\w%-]+/g, (word) => {
    if (word.length < SHORTEST) return word
    const plain = decoded(word)
    const cut = plain.replaceAll(KEY, 'pets_$1_…').replaceAll(SESSION_TOKEN, '…').replaceAll(BARE_KEY, '…')
    return cut === plain ? word : cut
  })
}

/**
 * Matches //user:secret@ and user:secret@, and //user:secret without an @ unless a port follows the colon. Does not match
 * USER:PASSWORD, the placeholder in this program's messages, or a path after sqlite:.
 */
const USER_INFO =
  /(\/\/)(?!USER:PASSWORD@)(?:\S*@|(?!\[)[^\s/@:]*:(?![0-9]{1,5}(?!\w))\S*)|(?<![^\s"'/:@])(?!sqlite:)[^\s"'/:@]*:(?!\/\/|PASSWORD@)\S*@/g
const PARAMETER = /((?:password|passwd|passphrase|pwd|secret|token)\w*=)[^&;\s]+/gi

/** Redacts what looks like the credentials of an address, even if percent-encoded. Leaves every other word unchanged. */
export function redactCredentials(text: string): string {
  return text.replaceAll(/\S*[:=%]\S*/g, (word) => {
    // An escape such as %0a would end the password before its end.
    const plain = decoded(word).replaceAll(/\s/g, '')
    const cut = plain
      .replaceAll(USER_INFO, (found, slashes = '') => `${slashes}…${found.endsWith('@') ? '@' : ''}`)
      .replaceAll(PARAMETER, '$1…')
    return cut === plain ? word : cut
  })
}

/** Redacts a value that may be a database address by mistake, for a message. A password may contain spaces. */
export function redactValue(value: string): string {
  const whole = value.replaceAll(/\s/g, '')
  return redactCredentials(whole) === whole ? value : redactAddress(value)
}

/** A word, or scheme, host, port and path: an address without a part that can be a password. */
const PLAIN_ADDRESS =
  /^(?:[^:@?#=&;%\s]*|[a-z][a-z0-9+.-]*:(?:\/\/(?:(?:\[[\da-f:.]+\]|[\w.-]+)(?::[0-9]{1,5})?(?:\/[\w.~/-]*)?)?)?)$/i
const SCHEME = /^(?:sqlite:|postgres(?:ql)?:|[a-z][a-z0-9+.-]*:(?=\/\/))/i

/** Redacts a broken address for a message: keeps only the scheme, unless no part can be a password. */
export function redactAddress(address: string): string {
  return PLAIN_ADDRESS.test(address) ? address : `${SCHEME.exec(address)?.[0] ?? ''}…`
}

const MOST_DECODINGS = 4

/** Percent-decodes up to `MOST_DECODINGS` times; one pass decodes a percent sign that was encoded several times. */
export function decoded(word: string): string {
  let text = word
  for (let round = 0; round < MOST_DECODINGS && text.includes('%'); round += 1) {
    const next = text.replaceAll(/%(?:25)*([0-7][0-9a-f])/gi, (_escape, code: string) =>
      String.fromCharCode(Number.parseInt(code, 16)),
    )
    if (next === text) break
    text = next
  }
  return text
}

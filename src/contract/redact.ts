// Cuts secrets short before a text is logged, stored or put into a message: a client may have sent one in the wrong place.

/**
 * The start of a text that is an API key; one whose prefix was left out or written in another way, 36 characters of base62;
 * and a session token, 43 characters of base64url.
 */
const KEY = /pets_(live|test)_\w+/g
const BARE_KEY = /(?<![0-9A-Za-z])[0-9A-Za-z]{36}(?![0-9A-Za-z])/g
const SESSION_TOKEN = /(?<![\w-])[\w-]{43}(?![\w-])/g

/** Shorter words can hold none of them. */
const SHORTEST = 'pets_live_x'.length

/** Also recognises secrets that were percent-encoded, even several times. Leaves every other word as it is. */
export function redactSecrets(text: string): string {
  return text.replaceAll(/[\w%-]+/g, (word) => {
    if (word.length < SHORTEST) return word
    const plain = decoded(word)
    const cut = plain.replaceAll(KEY, 'pets_$1_…').replaceAll(SESSION_TOKEN, '…').replaceAll(BARE_KEY, '…')
    return cut === plain ? word : cut
  })
}

/**
 * User info before an @, with // or a colon, such as //me:secret@ and me:secret@; after // also where the @ is missing and no port
 * follows; and parameters. Leaves the placeholders of our own messages.
 */
const USER_INFO =
  /(\/\/)(?!USER:PASSWORD@)(?:\S*@|(?!\[)[^\s/@:]*:(?![0-9]{1,5}(?!\w))\S*)|(?<![^\s"'/:@])[^\s"'/:@]*:(?!\/\/|PASSWORD@)\S*@/g
const PARAMETER = /((?:password|passwd|passphrase|pwd|secret|token)\w*=)[^&;\s]+/gi

/** Cuts what looks like the credentials of an address out of a text, also percent-encoded ones. Leaves every other word as it is. */
export function redactCredentials(text: string): string {
  return text.replaceAll(/\S*[:=%]\S*/g, (word) => {
    const plain = decoded(word)
    const cut = plain
      .replaceAll(USER_INFO, (found, slashes = '') => `${slashes}…${found.endsWith('@') ? '@' : ''}`)
      .replaceAll(PARAMETER, '$1…')
    return cut === plain ? word : cut
  })
}

/** Returns what a message may repeat of a value that could be an address by mistake. A password may contain spaces. */
export function redactValue(value: string): string {
  const whole = value.replaceAll(/\s/g, '')
  return redactCredentials(whole) === whole ? value : redactAddress(value)
}

/** A word, or scheme, host, port and path: no part of these can be a password. */
const PLAIN_ADDRESS =
  /^(?:[^:@?#=&;%\s]*|[a-z][a-z0-9+.-]*:(?:\/\/(?:(?:\[[\da-f:.]+\]|[\w.-]+)(?::[0-9]{1,5})?(?:\/[\w.~/-]*)?)?)?)$/i
const SCHEME = /^(?:sqlite:|postgres(?:ql)?:|[a-z][a-z0-9+.-]*:(?=\/\/))/i

/** Returns what a message may repeat of a broken address: any part of it may be a password, so its scheme at most unless it is plain. */
export function redactAddress(address: string): string {
  return PLAIN_ADDRESS.test(address) ? address : `${SCHEME.exec(address)?.[0] ?? ''}…`
}

const MOST_DECODINGS = 4

/** Decodes until nothing changes. `%25…` stands for a percent sign that was itself encoded, however often. */
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

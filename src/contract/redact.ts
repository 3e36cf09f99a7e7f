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

const MOST_DECODINGS = 4

/** Decodes until nothing changes. `%25…` stands for a percent sign that was itself encoded, however often. */
function decoded(word: string): string {
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

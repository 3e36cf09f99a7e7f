// The limits and times of the interface. Messages, the reference, OpenAPI and parser errors take their numbers from here.

/** The largest request body, in bytes. */
export const BODY_LIMIT = 16 * 1024

/** The largest file that the console takes, in bytes, and how many animals it may have. Commands take larger ones. */
export const UPLOAD_LIMIT = 5 * 1024 * 1024
export const UPLOAD_ROWS = 20_000

/** The largest request line and headers together, in bytes. */
export const HEADERS_LIMIT = 16 * 1024

/** The longest name of an animal, in Unicode code points. */
export const NAME_MAX_LENGTH = 255

/** The longest name of a person, in Unicode code points. */
export const PERSON_NAME_MAX_LENGTH = 60

/** The longest name of a category, in Unicode code points. */
export const CATEGORY_NAME_MAX_LENGTH = 100

/** Its longest form for comparison (`foldName`), which has 18 characters for some signs. */
export const CATEGORY_NAME_FOLDED_MAX_LENGTH = 2 * CATEGORY_NAME_MAX_LENGTH

/** How many categories can have a name: pages read all of them. */
export const CATEGORIES_MOST = 1000

/** How many names of categories a member adds in 24 hours. Managers and commands add any number. */
export const CATEGORIES_A_DAY = 200

/** The most active keys of an account. An account that has more, from before this limit, keeps them. */
export const ACTIVE_KEYS_MOST = 100

/** How many animals one page of a list has. */
export const PAGE_SIZE = { minimum: 1, maximum: 100, default: 20 } as const

/** A key may have every character that HTTP allows in a header. */
export const IDEMPOTENCY = { keyMaxLength: 255, keptHours: 24 } as const

/** How long a sign-in to the console lasts without use, unless a setting says otherwise, and at most. */
export const SESSION_MINUTES = { idle: 120, most: 12 * 60 } as const

/** The values of `Retry-After`, in seconds. */
export const RETRY_AFTER = { unavailable: 2, notReady: 1, inProgress: 1, rehearsed: 1, reading: 5 } as const

/** The longest delay of a request that a client can rehearse on staging. */
export const LONGEST_REHEARSED_DELAY_MS = 30_000

/** Formats a size, such as "16 KiB". */
export function kibibytes(bytes: number): string {
  return `${bytes / 1024} KiB`
}

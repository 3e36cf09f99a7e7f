// The limits and times of the interface. Messages, the reference, OpenAPI and parser errors take their numbers from here.

/** The largest request body, in bytes. */
export const BODY_LIMIT = 16 * 1024

/** The largest request line and headers together, in bytes. */
export const HEADERS_LIMIT = 16 * 1024

/** The longest name of an animal, in Unicode code points. */
export const NAME_MAX_LENGTH = 255

/** The longest name of a category, in Unicode code points. */
export const CATEGORY_NAME_MAX_LENGTH = 100

/** How many categories can have a name: pages read all of them. */
export const CATEGORIES_MOST = 1000

/** How many animals one page of a list has. */
export const PAGE_SIZE = { minimum: 1, maximum: 100, default: 20 } as const

/** A key may have every character that HTTP allows in a header. */
export const IDEMPOTENCY = { keyMaxLength: 255, keptHours: 24 } as const

/** The values of `Retry-After`, in seconds. */
export const RETRY_AFTER = { unavailable: 2, notReady: 1, inProgress: 1, rehearsed: 1 } as const

/** The limits of rehearsed failures on staging: the longest delay of a request, and how many are delayed at a time. */
export const REHEARSAL = { longestDelayMs: 30_000, heldRequests: 100 } as const

/** Formats a size, such as "16 KiB". */
export function kibibytes(bytes: number): string {
  return `${bytes / 1024} KiB`
}

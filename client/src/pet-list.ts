// The return value of listPets: a page when awaited, all animals when iterated.
import type { Answer } from './answer.ts'
import type { Pet } from './contract.ts'
import { UnexpectedResponseError } from './errors.ts'
import { linkTo } from './link.ts'
import { parseList } from './wire.ts'

export interface PetPage {
  pets: Pet[]
  /** The `cursor` of the listPets call that returns the next page; undefined on the last page. */
  nextCursor: string | undefined
  requestId: string | undefined
}

/** Fetches the page at a cursor, or the first page. `all` is true if the caller iterates through all pages. */
type FetchPage = (cursor: string | undefined, all: boolean) => Promise<PetPage>

/** Sends no request before it is awaited or iterated. */
export class PetList implements PromiseLike<PetPage>, AsyncIterable<Pet> {
  readonly #fetchPage: FetchPage
  readonly #cursor: string | undefined
  #page: Promise<PetPage> | undefined

  constructor(fetchPage: FetchPage, cursor: string | undefined) {
    this.#fetchPage = fetchPage
    this.#cursor = cursor
  }

  /** Makes `await` fetch one page. Awaited again, it returns the same page without a request. */
  // oxlint-disable-next-line unicorn/no-thenable -- being awaitable is what it is for
  then<A = PetPage, B = never>(
    onPage?: ((page: PetPage) => A | PromiseLike<A>) | null,
    onError?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.#page ??= this.#fetchPage(this.#cursor, false)
    return this.#page.then(onPage, onError)
  }

  /** Yields every animal, newest first. A page is fetched when the one before it is used up. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Pet, void, undefined> {
    let cursor = this.#cursor
    do {
      const page: PetPage = await this.#fetchPage(cursor, true)
      yield* page.pets
      cursor = page.nextCursor
    } while (cursor !== undefined)
  }
}

/** Returns undefined for an answer that is not a list of animals. */
export function parsePage(answer: Answer, cursor: string | undefined): PetPage | undefined {
  const pets = parseList('Pet', answer.value)
  return pets && { pets, nextCursor: nextCursorOf(answer, cursor), requestId: answer.requestId }
}

/**
 * Returns the cursor of the next page, from the Link header of this answer. Uses nothing else of the link, so the API
 * key is never sent to an address other than baseUrl.
 */
function nextCursorOf({ url, status, headers, requestId }: Answer, cursor: string | undefined): string | undefined {
  const next = linkTo('next', headers.get('Link'), url)
  if (next === undefined) return undefined
  const nextCursor = next.searchParams.get('cursor')
  if (nextCursor !== null && nextCursor !== cursor) return nextCursor
  const message = `GET ${url.href} answered with a link to the next page that does not lead on.`
  throw new UnexpectedResponseError({ code: 'unexpected_response', message, status, requestId })
}

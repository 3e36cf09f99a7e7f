// Searches animals by their names: reads the folded name of one after the other, newest first, in slices, of which a request reads a
// bounded number. So a word that nothing has costs what a word costs that everything has, and the next request goes on.
import { PET_STATUSES, type PetStatus } from '../contract/pets.ts'
import { nextSlice } from '../timing.ts'
import { type Page, pageOf, statusesOf, type Summarize } from './pet-list.ts'
import type { FoundPets, PetSearch, PetStore } from './store.ts'

/** How much a request reads at most. */
export const NAMES_READ = 200_000
const BYTES_READ = 20_000_000

/**
 * How many names are read at a time, which holds up the event loop with SQLite: usually 1 ms. A tenth of them where they are long or may
 * be: then they have at most 0.3 MB, of which a word that all but have takes a ms. Each further word costs as much.
 */
const SLICE = 2000
const LONG_BYTES = 150

/** Above every id. */
const BEYOND = 2n ** 63n

/** An animal that was added by hand has no folded name. */
const SELECT_NAMES = 'SELECT id, status, coalesce(name_folded, lower(name)) AS name_folded FROM pets'
const summaryOf = (hasWords: string) => `count(*), min(id), CAST(sum(octet_length(name_folded)) AS BIGINT),
  string_agg(CASE WHEN ${hasWords} THEN CAST(id AS TEXT) || ' ' || status END, ',')`

/** The animals of one status, read by an index, or of all, also of those that only a later release knows. */
class Names {
  readonly statuses: readonly PetStatus[]
  readonly #page: Page
  /** All that have this id or a higher one have been read. */
  position: bigint
  isEnd = false
  #isLong = true
  /** How many of each status have the words, and the newest of them. */
  readonly counts = new Map<string, number>()
  readonly found: bigint[] = []

  constructor(query: PetSearch, status: PetStatus | undefined, from: bigint | undefined) {
    const { before: _before, ...filters } = query
    this.#page = pageOf({ ...filters, status, inShop: false }, SELECT_NAMES)
    this.statuses = status === undefined ? PET_STATUSES : [status]
    this.position = from ?? BEYOND
  }

  /** Reads a slice; resolves with how many names and bytes it had. */
  async read(summarize: Summarize, { words, before, limit }: PetSearch): Promise<{ names: number; bytes: number }> {
    const size = Math.ceil(SLICE / words.length / (this.#isLong ? 10 : 1))
    const row = await summarize(
      { ...this.#page, ...(this.position < BEYOND && { before: this.position }), limit: size },
      summaryOf,
      words,
    )
    const [names, bytes] = [Number(row[0]), Number(row[2] ?? 0)]
    const isFull = this.found.length > limit
    for (const match of (row[3] as string | null)?.split(',') ?? []) {
      const [id, status] = match.split(' ') as [string, string]
      this.counts.set(status, (this.counts.get(status) ?? 0) + 1)
      if (!isFull && (before === undefined || BigInt(id) < before)) this.found.push(BigInt(id))
    }
    this.position = (row[1] as bigint | null) ?? this.position
    this.#isLong = bytes > names * LONG_BYTES
    this.isEnd = names < size
    return { names, bytes }
  }
}

export async function searchPets(summarize: Summarize, get: PetStore['get'], query: PetSearch): Promise<FoundPets> {
  const { before, limit, isCounted } = query
  const statuses = statusesOf(query)
  const isOfAll = query.categoryId === undefined && statuses.length === PET_STATUSES.length

  /** Looks at animals below `from` until a page is full or, to count, at those of all statuses, as far as the bounds allow. */
  async function look(from: bigint | undefined, isCounting: boolean) {
    const all = (isOfAll ? [undefined] : PET_STATUSES).map((status) => new Names(query, status, from))
    const shown = all.filter((names) => names.statuses.some((status) => statuses.includes(status)))
    const others = isCounting ? all.filter((names) => !shown.includes(names)) : []
    let [namesLeft, bytesLeft] = [NAMES_READ, BYTES_READ]
    for (const group of [shown, others])
      while (namesLeft > 0 && bytesLeft > 0) {
        const next = highest(group)
        if (next === undefined || (!isCounting && found(shown).ids.length > limit)) break
        await nextSlice()
        query.signal?.throwIfAborted()
        const read = await next.read(summarize, query)
        namesLeft -= read.names
        bytesLeft -= read.bytes
      }
    const ended = all.filter(({ isEnd }) => isEnd)
    const counts = ended.flatMap((names) => names.statuses.map((status) => [status, names.counts.get(status) ?? 0]))
    return { ...found(shown), counts: isCounting ? Object.fromEntries(counts) : {} }
  }

  let looked = await look(isCounted ? undefined : before, isCounted === true)
  const { counts, until } = looked
  // The page begins below what was read to count.
  if (isCounted && before !== undefined && until !== undefined && until >= before) looked = await look(before, false)
  const ids = looked.ids.slice(0, limit)
  const pets = (await Promise.all(ids.map(get))).filter((pet) => pet !== undefined)
  return { pets, next: looked.ids.length > limit ? ids.at(-1) : looked.until, isFull: ids.length === limit, counts }
}

/** Returns the one that has not ended and stands at the highest id: the next newest animal is one of its own. */
function highest(all: readonly Names[]): Names | undefined {
  return all.filter(({ isEnd }) => !isEnd).toSorted((one, other) => descending(one.position, other.position))[0]
}

/** Returns the animals that were found, newest first, down to the id until which all were read; undefined for the end. */
function found(shown: readonly Names[]): { ids: bigint[]; until: bigint | undefined } {
  const until = highest(shown)?.position
  const ids = shown.flatMap((names) => names.found).filter((id) => until === undefined || id >= until)
  // One whose status is changed meanwhile may be found under both.
  return { ids: [...new Set(ids)].toSorted(descending), until }
}

const descending = (one: bigint, other: bigint): number => (one < other ? 1 : -1)

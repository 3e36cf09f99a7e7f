// Searches animals by the beginnings of the words of their names, in the same way for every engine.
//
// The index is a table of (word, animal id), which a chore fills some time after the animals were added or renamed. So a search
// also looks through the animals that the chore has not reached, and checks every animal that the index yields against its
// present name. An animal has one place among the results, at its first matching word in byte order.
import { INT64_MIN } from '../contract/int64.ts'
import { FILTER_NAMES } from '../contract/list-query.ts'
import type { Pet } from '../contract/pets.ts'
import { type ColumnValue, petOf } from './pet-columns.ts'
import type { FoundPets, PetSearch } from './store.ts'
import { inSlices } from './turns.ts'
import { comparePlaces, type Place, wordsOf } from './words.ts'

/** How an engine reads its index. */
export interface WordIndex {
  /**
   * Resolves with the newest animals that the chore has not reached, and those that were renamed since: `limit` of each at most.
   * `isWhole` is false if there may be more.
   */
  unindexed(limit: number): Promise<{ pets: Pet[]; isWhole: boolean }>
  /**
   * Resolves with at most `limit` words above `after` and below `end`, in order, each with its animal, or with undefined if that
   * was removed.
   */
  words(after: Place, end: string, limit: number): Promise<IndexedWord[]>
  /** Adds a batch of animals that were added or renamed; resolves with whether more wait. */
  indexBatch(): Promise<boolean>
}

export interface IndexedWord {
  place: Place
  pet: Pet | undefined
}

/** Converts a row of the index: the word, the animal's id, then its columns, which are null if the animal was removed. */
export function indexedWordOf([word, id, ...row]: readonly ColumnValue[]): IndexedWord {
  return { place: { word: word as string, id: id as bigint }, pet: row[0] === null ? undefined : petOf(row) }
}

/** How many unindexed animals a search looks through: the chore keeps their number far below this unless it falls behind. */
const UNINDEXED = 1000

/** How many words of the index a page examines at most. */
const EXAMINED = 500

export async function searchPets(index: WordIndex, query: PetSearch): Promise<FoundPets> {
  const { after, limit } = query
  // The longest word of the query usually has the fewest matches.
  const prefix = query.words.reduce((longest, word) => (word.length > longest.length ? word : longest))
  const found = new Map<bigint, Match>()
  // Before the index is read: an animal that the chore adds in between is found in either.
  const { pets, isWhole } = await index.unindexed(UNINDEXED)
  await inSlices(pets, (pet) => {
    const place = placeOf(pet, prefix, query)
    if (place !== undefined && (after === undefined || comparePlaces(place, after) > 0))
      found.set(pet.id, { pet, place })
  })
  let matches: Match[] = []
  let end: Place | undefined = after ?? { word: prefix, id: INT64_MIN }
  // Usually all words of the first read match; if not, one more read bounds the time of the page.
  for (const count of [limit + 1, EXAMINED - limit - 1]) {
    const words: IndexedWord[] = await index.words(end, prefix + LAST_CHARACTER, count)
    await inSlices(words, ({ place, pet }) => {
      const own = pet && placeOf(pet, prefix, query)
      if (own?.word === place.word) found.set(place.id, { pet: pet!, place })
    })
    end = words.length < count ? undefined : words.at(-1)!.place
    matches = [...found.values()].filter(({ place }) => end === undefined || comparePlaces(place, end) <= 0)
    if (end === undefined || matches.length > limit) break
  }
  const page = matches.toSorted((one, other) => comparePlaces(one.place, other.place)).slice(0, limit)
  return {
    pets: page.map(({ pet }) => pet),
    next: matches.length > limit ? page.at(-1)!.place : end,
    isWhole,
  }
}

interface Match {
  pet: Pet
  place: Place
}

/** Sorts after every character that a word can have: no character is assigned to this code point. */
const LAST_CHARACTER = '\u{10FFFF}'

/** Returns the animal's place if it matches the query, else undefined. */
function placeOf(pet: Pet, prefix: string, query: PetSearch): Place | undefined {
  if (FILTER_NAMES.some((name) => query[name] !== undefined && query[name] !== pet[name])) return undefined
  const words = wordsOf(pet.name)
  if (!query.words.every((sought) => words.some((word) => word.startsWith(sought)))) return undefined
  const places = words.filter((word) => word.startsWith(prefix)).map((word) => ({ word, id: pet.id }))
  return places.toSorted(comparePlaces)[0]
}

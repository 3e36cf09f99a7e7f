// Searches animals by the beginnings of the words of their names, in the same way for every engine.
//
// The index is a table of (word, animal id), which a chore fills some time after the animals were added or renamed. So a search
// also looks through the animals that the chore has not reached, and checks every animal that the index yields against its
// present name.
import { INT64_MIN } from '../contract/int64.ts'
import { FILTER_NAMES } from '../contract/list-query.ts'
import { type Pet, PET_STATUSES, type PetStatus } from '../contract/pets.ts'
import { COUNTED_MOST } from './category-store.ts'
import { type ColumnValue, petOf } from './pet-columns.ts'
import { statusesOf } from './pet-list.ts'
import type { FoundPets, PetSearch, Place } from './store.ts'
import { inSlices } from '../timing.ts'

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

interface IndexedWord {
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

/**
 * Looks at no more than `COUNTED_MOST` words of the index to count. If these are all that begin like the query, every match is known,
 * and a page is newest first. Otherwise only the order of the index can be paged within a bound: by word.
 */
export async function searchPets(index: WordIndex, query: PetSearch): Promise<FoundPets> {
  // The longest word of the query usually has the fewest matches.
  const prefix = query.words.reduce((longest, word) => (word.length > longest.length ? word : longest))
  // Before the index is read: an animal that the chore adds in between is found in either.
  const { pets, isWhole } = await index.unindexed(UNINDEXED)
  query.signal?.throwIfAborted()
  const words = await index.words({ word: prefix, id: INT64_MIN }, prefix + LAST_CHARACTER, COUNTED_MOST)
  const candidates = new Map([...pets, ...words.flatMap(({ pet }) => pet ?? [])].map((pet) => [pet.id, pet]))
  const ofAnyStatus = { ...query, status: undefined, inShop: false }
  const matches = (
    await inSlices([...candidates.values()], (pet) => (placeOf(pet, prefix, ofAnyStatus) ? [pet] : []), query.signal)
  ).flat()
  const counts = Object.fromEntries(
    PET_STATUSES.map((status) => [status, matches.filter((pet) => pet.status === status).length]),
  ) as Record<PetStatus, number>
  const isEveryWord = words.length < COUNTED_MOST
  const isNewestFirst = isEveryWord && (query.after === undefined || query.after.word === NEWEST_FIRST)
  const page = isNewestFirst ? pageByAge(query, matches) : await pageByWord(index, query, prefix, pets)
  const order = isNewestFirst ? 'newest' : 'word'
  return { ...page, isWhole, counts, isCounted: isWhole && isEveryWord, order }
}

/** The word of a place in a list that is newest first. */
const NEWEST_FIRST = ''

type FoundPage = Pick<FoundPets, 'pets' | 'next'>

function pageByAge(query: PetSearch, matches: readonly Pet[]): FoundPage {
  const { limit, after } = query
  const found = matches.filter((pet) => hasFilters(pet, query) && (after === undefined || pet.id < after.id))
  const pets = found.toSorted((one, other) => (one.id < other.id ? 1 : -1)).slice(0, limit)
  return { pets, next: found.length > limit ? { word: NEWEST_FIRST, id: pets.at(-1)!.id } : undefined }
}

/** Has each animal at its first matching word in byte order. A search that has grown past the bound since its last page starts anew. */
async function pageByWord(
  index: WordIndex,
  query: PetSearch,
  prefix: string,
  unindexed: readonly Pet[],
): Promise<FoundPage> {
  const { limit } = query
  const after = query.after?.word === NEWEST_FIRST ? undefined : query.after
  const found = new Map<bigint, Match>()
  const addUnindexed = (pet: Pet) => {
    const place = placeOf(pet, prefix, query)
    if (place !== undefined && (after === undefined || comparePlaces(place, after) > 0))
      found.set(pet.id, { pet, place })
  }
  await inSlices(unindexed, addUnindexed, query.signal)
  const addIndexed = ({ place, pet }: IndexedWord) => {
    const own = pet && placeOf(pet, prefix, query)
    if (own?.word === place.word) found.set(place.id, { pet: pet!, place })
  }
  let matches: Match[] = []
  let end: Place | undefined = after ?? { word: prefix, id: INT64_MIN }
  // Usually all words of the first read match; if not, one more read bounds the time of the page.
  for (const count of [limit + 1, Math.max(1, EXAMINED - limit - 1)]) {
    const words: IndexedWord[] = await index.words(end, prefix + LAST_CHARACTER, count)
    await inSlices(words, addIndexed, query.signal)
    end = words.length < count ? undefined : words.at(-1)!.place
    matches = [...found.values()].filter(({ place }) => end === undefined || comparePlaces(place, end) <= 0)
    if (end === undefined || matches.length > limit) break
  }
  const page = matches.toSorted((one, other) => comparePlaces(one.place, other.place)).slice(0, limit)
  return { pets: page.map(({ pet }) => pet), next: matches.length > limit ? page.at(-1)!.place : end }
}

function hasFilters(pet: Pet, query: PetSearch): boolean {
  const isCategory = query.categoryId === undefined || query.categoryId === pet.categoryId
  const isShown = !query.inShop || statusesOf(query).includes(pet.status)
  return isCategory && isShown && FILTER_NAMES.every((name) => query[name] === undefined || query[name] === pet[name])
}

interface Match {
  pet: Pet
  place: Place
}

/** Sorts after every character that a word can have: no character is assigned to this code point. */
const LAST_CHARACTER = '\u{10FFFF}'

/** Returns the animal's place if it matches the query, else undefined. */
function placeOf(pet: Pet, prefix: string, query: PetSearch): Place | undefined {
  if (!hasFilters(pet, query)) return undefined
  const words = wordsOf(pet.name)
  if (!query.words.every((sought) => words.some((word) => word.startsWith(sought)))) return undefined
  const places = words.filter((word) => word.startsWith(prefix)).map((word) => ({ word, id: pet.id }))
  return places.toSorted(comparePlaces)[0]
}

/**
 * How many UTF-16 code units are folded: of the text, and then of its decomposed characters. A name has at most 510.
 * Few characters decompose to more than 4 units, but U+FDFA to 18: only the beginning of a name that repeats it is searched.
 */
const FOLDED_LENGTH = { own: 512, decomposed: 1024 }

/** Returns the first 10 different words in order, each cut to 32 code points, without case, marks and invisible characters. */
export function wordsOf(text: string): string[] {
  const decomposed = text.slice(0, FOLDED_LENGTH.own).normalize('NFKD').slice(0, FOLDED_LENGTH.decomposed)
  // A final sigma (ς) becomes an inner one (σ), so that the beginning of a word matches the whole word.
  const plain = decomposed.replaceAll(IGNORED, '').toLowerCase().replaceAll('ς', 'σ')
  const words = (plain.match(WORD) ?? []).map((word) => (word.length <= 32 ? word : [...word].slice(0, 32).join('')))
  return [...new Set(words)].slice(0, 10)
}

/** Marks, such as accents, and format characters, such as those that change the direction of text. */
const IGNORED = /[\p{M}\p{Cf}]/gu

/** A run of letters, digits and symbols, such as emoji. */
const WORD = /[\p{L}\p{N}\p{S}]+/gu

/** Compares by the UTF-8 bytes of the word, as both engines do, then by the id. */
function comparePlaces(one: Place, other: Place): number {
  if (one.word !== other.word) return isBefore(one.word, other.word) ? -1 : 1
  return one.id < other.id ? -1 : Number(one.id > other.id)
}

/** Compares by code point, which is the order of UTF-8 too; in UTF-16, surrogates come before U+E000 to U+FFFF. */
function isBefore(one: string, other: string): boolean {
  let at = 0
  while (one.charCodeAt(at) === other.charCodeAt(at)) at += 1
  return (one.codePointAt(at) ?? -1) < (other.codePointAt(at) ?? -1)
}

/** Resolves with the words of these animals in the order of the index: neighbours are cheap to insert. */
export async function wordRows(pets: readonly { id: bigint; name: string }[]): Promise<Place[]> {
  const rows = await inSlices(pets, ({ id, name }) => wordsOf(name).map((word) => ({ word, id })))
  return rows.flat().toSorted(comparePlaces)
}

// The one place where animals are added, changed and removed: what a row has, its limits, and the data of its event. The engines make
// their fast inserts of these parts (test/repository/imports.test.ts). A column that is computed of an animal belongs here.
import { type Category, CategoryNames } from '../contract/category-name.ts'
import { allOf, difference } from '../contract/pet-words.ts'
import { FIELD_LIST, type NewPet, type Pet } from '../contract/pets.ts'
import { foldForSearch } from '../contract/text/search-words.ts'
import { aboutPet, type Author } from './account-store.ts'
import { type Addition, additionOf, type ColumnValue, PET_COLUMNS, valuesOf } from './pet-columns.ts'
import { eventStatement, insertRows, type Statements } from './sql.ts'

/** What a change writes. */
const CHANGED: readonly { name: string; column: string }[] = [...FIELD_LIST, { name: 'folded', column: 'name_folded' }]
export const NEW_FIELDS = [...CHANGED, { name: 'at', column: 'added_at' }, { name: 'by', column: 'added_by' }]

export const NEW_COLUMNS: readonly string[] = NEW_FIELDS.map(({ column }) => column)
/** Starts a statement; what follows gives the values of `NEW_COLUMNS`, those of a `NewRow`. */
export const INSERT_PETS = `INSERT INTO pets (${NEW_COLUMNS.join()})`
export const INSERT_PETS_WITH_IDS = `INSERT INTO pets (id, ${NEW_COLUMNS.join()})`

/** What a copy computes of the name of an animal. */
export const DERIVED_COLUMNS = ['name_folded'] as const
export const derivedFrom = (name: string): [folded: string] => [foldForSearch(name)]

type Named = Readonly<Record<string, ColumnValue | number | undefined>>

/**
 * Returns what `CHANGED` names. Throws for a value that its field does not take: who reads one refuses it before, in words for its
 * sender. What is `stored` may stay.
 */
function written(newPet: NewPet, stored?: NewPet): Named {
  for (const { name, check, expected } of FIELD_LIST) {
    const value = newPet[name]
    if (value !== stored?.[name] && !check(value)) throw new RangeError(`${name} must be ${expected}.`)
  }
  return { ...newPet, folded: foldForSearch(newPet.name) }
}

/** An animal to add. Throws if it breaks a limit: before it shares a statement or a transaction with others. */
export class NewRow {
  readonly newPet: NewPet
  /** By name. */
  readonly named: Named

  constructor(newPet: NewPet, addition?: Addition) {
    this.newPet = newPet
    this.named = { ...written(newPet), ...addition }
  }

  /** Returns the values of `NEW_COLUMNS`. */
  values(): (ColumnValue | number)[] {
    return NEW_FIELDS.map(({ name }) => this.named[name] ?? null)
  }
}

/** Adds animals by statements of both engines, in a batch if there is one. */
export function insertPets(rows: readonly NewRow[], batchId: bigint | null = null): Statements<void> {
  const values = rows.map((row) => [...row.values(), batchId])
  return insertRows('pets', [...NEW_COLUMNS, 'batch_id'], values)
}

/** The parameters are the id, the values that are expected, and then those that are wanted. */
const IS_SAME = `id = $1 AND ${PET_COLUMNS.map((column, index) => `${column} IS NOT DISTINCT FROM $${index + 2}`).join(' AND ')}`
const WANTED = CHANGED.map(({ column }, index) => `${column} = $${PET_COLUMNS.length + index + 2}`).join()
const CHANGE = `UPDATE pets SET ${WANTED} WHERE ${IS_SAME}`
const REMOVE = `DELETE FROM pets WHERE ${IS_SAME} RETURNING added_at, added_by`

/** Changes an animal to `after`, with the event that says what was changed. Returns false if it no longer equals `pet`. */
export function* changePet(pet: Pet, after: NewPet, author: Author): Statements<boolean> {
  const wanted = written(after, pet)
  const values = CHANGED.map(({ name }) => wanted[name] ?? null)
  if ((yield [CHANGE, pet.id, ...valuesOf(pet), ...values]).count === 0) return false
  const names = yield* namesOf(pet.categoryId === after.categoryId ? [] : [pet.categoryId, after.categoryId])
  const data = difference(pet, after, names)
  yield eventStatement({ ...author, action: 'pet.changed', ...aboutPet(pet), data })
  return true
}

/** Removes an animal, with the event that says what it was and who added it. Returns false if it no longer equals `pet`. */
export function* removePet(pet: Pet, author: Author): Statements<boolean> {
  const [removed] = (yield [REMOVE, pet.id, ...valuesOf(pet)]).rows
  if (removed === undefined) return false
  const added = additionOf([removed['added_at'], removed['added_by']] as ColumnValue[])
  const data = { ...allOf(pet, yield* namesOf([pet.categoryId])), ...(added && { added }) }
  yield eventStatement({ ...author, action: 'pet.removed', ...aboutPet(pet), data })
  return true
}

/** Reads only the names that an event needs. */
function* namesOf(numbers: readonly bigint[]): Statements<CategoryNames> {
  const found: Category[] = []
  for (const number of numbers) {
    const [row] = (yield ['SELECT name FROM categories WHERE number = $1 AND removed_at IS NULL', number]).rows
    if (row !== undefined) found.push({ number, name: row['name'] as string })
  }
  return new CategoryNames(found, String)
}

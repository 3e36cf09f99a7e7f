// Batches: what a person does to many animals at once. The port and its SQL.
//
// - A batch is frozen when it begins: its animals as they were shown, by id. A slice is one transaction: the next animals that still are
//   so are changed, each with its event, and they and the batch are marked. So a batch goes on where it stopped, whatever stopped it.
// - Undo is a batch, too: it changes those back whose newest change is the batch's. For a file that was brought in, it removes those that
//   nobody has changed since.
// - Animals are changed only for an account that exists; removed, or changed back for somebody else, only for a manager.
import { FIELDS, fieldFromText, type NewPet, type Pet } from '../../contract/pets.ts'
import { type Author, OF_PETS } from '../account-store.ts'
import { PET_ROW, petOfRecord } from '../pet-columns.ts'
import { changePet, removePet } from '../pet-writes.ts'
import { toJson } from '../records.ts'
import type { Row, Sql, Statements } from '../sql.ts'
import { type Batch, BATCH_ROW, batchOf, formerOf, GOING_ON, UNDOABLE } from './batch.ts'

/** How long what became of each animal is kept; the line of the history stays. */
export const BATCH_PETS_KEPT_MS = 8 * 86_400_000

/** How many animals a slice has: few, because on SQLite it blocks the process. */
const SLICE = 50

/** `form` is the key of the form that was sent; there are as many animals as are listed, or `total`. */
export type NewBatch = Pick<Batch, 'action' | 'data'> & { form: string; total?: number }

/** An animal as it was shown; without `former` it is left alone. */
export interface BatchPet {
  id: bigint
  former: NewPet | undefined
}

export interface BatchStore {
  /**
   * Begins a batch with these animals, or finds the one that the same form has begun. Resolves with undefined if the
   * account no longer exists.
   */
  begin(batch: NewBatch, pets: readonly BatchPet[], author: Author): Promise<Batch | undefined>
  /** Finds the batch that a form has begun. */
  begunBy(form: string): Promise<Batch | undefined>
  /** Does the next slice. Resolves with whether another one follows: not if the batch has ended or may not go on. */
  advance(id: bigint, author: Author): Promise<boolean>
  /** Begins to take a batch back, which ends it; resolves with the Undo, also if it was begun before. */
  undo(id: bigint, author: Author): Promise<Batch | undefined>
  find(id: bigint): Promise<Batch | undefined>
  /** Lists the animals that a batch or its Undo has left alone. */
  leftAlone(id: bigint, limit: number): Promise<bigint[]>
  /** Lists the animals that came with a file and are there. */
  added(id: bigint, limit: number): Promise<Pet[]>
  /** Purges the animals of one batch from before `before`; resolves with how many, 0 when none is left. */
  purge(before: number): Promise<number>
}

const SELECT = `SELECT ${BATCH_ROW} FROM batches`
const first = ([row]: readonly Row[]) => row && batchOf(Object.values(row))

export function batchStore(sql: Sql): BatchStore {
  /** Reads a batch; an Undo is locked before its batch is read. */
  function* read(id: bigint, lock = ''): Statements<Batch | undefined> {
    return first((yield [`${SELECT} WHERE id = $1 ${lock}`, id]).rows)
  }

  /** Reads the next animals; those whose `pet` is undefined can't be changed. */
  function* next(of: Batch, place: bigint, state: string): Statements<{ id: bigint; pet: Pet | undefined }[]> {
    if (of.action === 'imported') {
      const added = `SELECT ${PET_ROW} FROM pets WHERE batch_id = $1 AND id > $2 ORDER BY id LIMIT ${SLICE}`
      return (yield [added, of.id, place]).rows.map(petOfRecord).map((pet) => ({ id: pet.id, pet }))
    }
    const listed = `SELECT pet_id, former FROM batch_pets WHERE batch_id = $1 AND pet_id > $2 AND state = $3 ORDER BY pet_id LIMIT ${SLICE}`
    const { rows } = yield [listed, of.id, place, state]
    return rows.map((row) => {
      const id = row['pet_id'] as bigint
      return { id, pet: formerOf(id, row['former'] as string) }
    })
  }

  /** Does to one animal what the batch does. Returns false if it is not as it was. */
  function* apply(pet: Pet, of: Batch, isUndo: boolean, author: Author): Statements<boolean> {
    const { field, to = '' } = of.data
    if (isUndo) {
      const newest = `SELECT batch_id FROM audit_events WHERE ${OF_PETS} AND pet_id = $1 ORDER BY id DESC LIMIT 1`
      const [event] = (yield [newest, pet.id]).rows
      if (of.action === 'imported') return event === undefined && (yield* removePet(pet, author))
      if (event?.['batch_id'] !== of.id) return false
    }
    if (of.action === 'removed') return yield* removePet(pet, author)
    if (field === undefined) return false
    const changed = { ...pet, [field]: fieldFromText(field, to) }
    const [before, after] = isUndo ? [changed, pet] : [pet, changed]
    return FIELDS[field].check(after[field]) && (yield* changePet(before, after, author))
  }

  return {
    begin({ form, action, data, total }, pets, { at, accountId, via }) {
      const insert = `INSERT INTO batches (at, account_id, via, action, data, form, total)
        SELECT CAST($1 AS BIGINT), id, $2, $3, $4, $5, CAST($6 AS BIGINT) FROM accounts WHERE id = $7
        ON CONFLICT (form) DO NOTHING RETURNING id`
      const list = `INSERT INTO batch_pets (batch_id, pet_id, former, state) SELECT CAST($1 AS BIGINT), pet.id, pet.former, 'waiting'
        FROM ${sql.jsonTable('$2', 'pet', 'id BIGINT, former TEXT')}`
      const values = [at, via, action, JSON.stringify(data), form, total ?? pets.length, accountId]
      const listed = toJson(pets.map((pet) => ({ id: pet.id, former: toJson({ ...pet.former, id: undefined }) })))
      return sql.transaction(function* () {
        const [made] = (yield [insert, ...values]).rows
        if (made !== undefined && pets.length > 0) yield [list, made['id'] as bigint, listed]
        return first((yield [`${SELECT} WHERE form = $1`, form]).rows)
      })
    },

    advance: (id, by) =>
      sql.transaction(function* () {
        const batch = yield* read(id, sql.lock('FOR UPDATE'))
        const of = batch?.undoes === undefined ? batch : yield* read(batch.undoes)
        if (batch === undefined || of === undefined || batch.undoneBy !== undefined || batch.done >= batch.total)
          return false
        const isUndo = of !== batch
        if (!(isUndo ? UNDOABLE : GOING_ON).has(of.action)) return false
        const [account] = (yield ['SELECT role FROM accounts WHERE id = $1', by.accountId]).rows
        const needsManager = of.action === 'removed' || of.accountId !== by.accountId
        if (account === undefined || (needsManager && account['role'] !== 'manager')) return false
        const [from, done, left] = isUndo
          ? (['changed', 'undone', 'kept'] as const)
          : (['waiting', 'changed', 'left'] as const)
        const items = yield* next(of, batch.place, from)
        const mark =
          'UPDATE batch_pets SET state = $1 WHERE batch_id = $2 AND pet_id > $3 AND pet_id <= $4 AND state = $5'
        let changed = 0
        for (const { id: petId, pet } of items) {
          if (pet !== undefined && (yield* apply(pet, of, isUndo, { ...by, batchId: id }))) changed += 1
          else yield [mark, left, of.id, petId - 1n, petId, from]
        }
        const place = items.at(-1)?.id ?? batch.place
        yield [mark, done, of.id, batch.place, place, from]
        const isLast = items.length < SLICE || batch.done + items.length >= batch.total
        const count = isLast ? batch.total : batch.done + items.length
        const advanced = 'UPDATE batches SET done = $1, changed = changed + $2, place = $3 WHERE id = $4'
        yield [advanced, count, changed, place, id]
        if (isLast && isUndo && of.data.hash !== undefined)
          yield ['DELETE FROM imports WHERE hash = $1 AND batch_id = $2', of.data.hash, of.id]
        return !isLast
      }),

    undo(id, { at, accountId, via }) {
      const insert = `INSERT INTO batches (at, account_id, via, action, data, total, undoes)
        SELECT CAST($1 AS BIGINT), accounts.id, $2, 'undone', batches.data, batches.changed, batches.id
        FROM batches, accounts WHERE batches.id = $3 AND accounts.id = $4 RETURNING id`
      return sql.transaction(function* () {
        const batch = yield* read(id, sql.lock('FOR UPDATE'))
        if (batch?.undoneBy !== undefined) return yield* read(batch.undoneBy)
        if (batch === undefined || !UNDOABLE.has(batch.action)) return undefined
        const [made] = (yield [insert, at, via, id, accountId]).rows
        if (made === undefined) return undefined
        const undoId = made['id'] as bigint
        yield ['UPDATE batches SET undone_by = $1 WHERE id = $2', undoId, id]
        return yield* read(undoId)
      })
    },

    find: async (id) => first(await sql.read(`${SELECT} WHERE id = $1`, id)),
    begunBy: async (form) => first(await sql.read(`${SELECT} WHERE form = $1`, form)),

    async leftAlone(id, limit) {
      const left = `SELECT pet_id AS id FROM batch_pets WHERE batch_id = $1 AND state IN ('left', 'kept') ORDER BY pet_id LIMIT ${limit}`
      return (await sql.read<{ id: bigint }>(left, id)).map((row) => row.id)
    },

    async added(id, limit) {
      const added = `SELECT ${PET_ROW} FROM pets WHERE batch_id = $1 ORDER BY id LIMIT ${limit}`
      return (await sql.read(added, id)).map(petOfRecord)
    },

    purge(before) {
      const oldest = 'SELECT id FROM batches WHERE id = (SELECT min(batch_id) FROM batch_pets) AND at < $1'
      return sql.run([`DELETE FROM batch_pets WHERE batch_id IN (${oldest})`, before])
    },
  }
}

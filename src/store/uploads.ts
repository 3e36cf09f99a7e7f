// The port for files that people bring in by the console: kept between its steps, for whichever instance and process serves the next one.
import { plain, type Sql } from './sql.ts'

/** How long a file is kept. */
export const UPLOAD_KEPT_MS = 3_600_000

/** How many files an account has at most: a further one takes the place of the oldest. */
export const UPLOADS_KEPT = 5

/** A file that has arrived completely. */
export interface Upload {
  /** A random token, so that the address of a file does not reveal that of another. */
  id: string
  /** The file's name on the person's device. */
  name: string
  size: number
  /** SHA-256 in hexadecimal, by which an import recognises the file. */
  hash: string
  /** How its rows become animals, as far as the person has said: a text of the console (import-plan.ts). */
  plan?: string
}

export interface UploadStore {
  /** Begins a file without content. Resolves with false if the account no longer exists. */
  begin(upload: Pick<Upload, 'id' | 'name'>, accountId: string, now: number): Promise<boolean>
  /** Adds the part `number`, counted from 0. Resolves with false if the file or its account was removed meanwhile. */
  append(id: string, number: number, content: Uint8Array): Promise<boolean>
  /** Records that the file has arrived completely. Resolves with false if it was removed meanwhile. */
  complete(id: string, size: number, hash: string, plan?: string): Promise<boolean>
  /** Resolves with false if the file no longer has the plan that it had, or was removed. */
  savePlan(upload: Pick<Upload, 'id' | 'plan'>, plan: string): Promise<boolean>
  /** Resolves with undefined if the account has no such file that arrived completely, after `since`. */
  find(id: string, accountId: string, since: number): Promise<Upload | undefined>
  /** Resolves with undefined behind the last part, or if the file was removed. */
  part(id: string, number: number): Promise<Uint8Array | undefined>
  /** Removes one file from before `before`; resolves with whether there was one. */
  purge(before: number): Promise<boolean>
}

export function uploadStore(sql: Sql): UploadStore {
  return {
    begin({ id, name }, accountId, now) {
      const removeOldest = `DELETE FROM uploads WHERE account_id = $1 AND id NOT IN (SELECT id FROM uploads
        WHERE account_id = $1 ORDER BY created_at DESC, id LIMIT ${UPLOADS_KEPT - 1})`
      const insert = `INSERT INTO uploads (id, account_id, name, created_at)
        SELECT $1, id, $2, CAST($3 AS BIGINT) FROM accounts WHERE id = $4`
      return sql.transaction(function* () {
        yield* sql.oneByOne
        yield [removeOldest, accountId]
        return (yield [insert, id, name, now, accountId]).count === 1
      })
    },

    /** Waits, with FOR KEY SHARE, for a removal in progress. */
    async append(id, number, content) {
      const insert = `INSERT INTO upload_parts (upload_id, number, content)
        SELECT id, CAST($1 AS BIGINT), $2 FROM uploads WHERE id = $3 ${sql.lock('FOR KEY SHARE')}`
      return (await sql.run([insert, number, content, id])) === 1
    },

    async complete(id, size, hash, plan) {
      const update = 'UPDATE uploads SET size = $1, hash = $2, plan = $3 WHERE id = $4'
      return (await sql.run([update, size, hash, plan ?? null, id])) === 1
    },

    async savePlan({ id, plan: former }, plan) {
      const update = 'UPDATE uploads SET plan = $1 WHERE id = $2 AND plan IS NOT DISTINCT FROM $3'
      return (await sql.run([update, plan, id, former ?? null])) === 1
    },

    async find(id, accountId, since) {
      const select =
        'SELECT id, name, size, hash, plan FROM uploads WHERE id = $1 AND account_id = $2 AND created_at > $3 AND hash IS NOT NULL'
      const [row] = await sql.read(select, id, accountId, since)
      return row && (plain(row) as Upload)
    },

    async part(id, number) {
      const select = 'SELECT content FROM upload_parts WHERE upload_id = $1 AND number = $2'
      const [row] = await sql.read<{ content: Uint8Array }>(select, id, number)
      return row?.content
    },

    /** One at a time, because its parts go with it. Skips a file that another instance is removing. */
    async purge(before) {
      const remove = `DELETE FROM uploads WHERE id IN
        (SELECT id FROM uploads WHERE created_at < $1 LIMIT 1 ${sql.lock('FOR UPDATE SKIP LOCKED')})`
      return (await sql.run([remove, before])) === 1
    },
  }
}

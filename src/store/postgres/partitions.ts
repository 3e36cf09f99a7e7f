// The animals in partitions by id: the move of a running store to them, and the next partition before it is needed.
//
//   pets                      partitioned by ranges of ids; each partition is named after the id at which it ends
//     pets_below_30000000     the table of before the move: all lower ids, also negative ones
//     pets_below_40000000     the ids from 30000000 on
//     pets_beyond             the default partition: whatever no other takes, so that no create fails without the chore
//
// Each change of the tables holds a lock for some milliseconds. Attaching a partition locks only the default one, which no create uses.
import { setTimeout } from 'node:timers/promises'
import type { Partitions, PartitionStore } from '../partition-store.ts'
import { PartitionRefused } from '../store.ts'
import type { Database } from './connection.ts'
import { distribute, readShards } from './distribution.ts'
import { asStoreFailure, explain, isLockTimeout, sqlState } from './failures.ts'
import type { Pool } from './pool.ts'
import { findMigrationObstacle } from './rights.ts'
import { tryLock, withBriefLocks, withLock, withLockedPets } from './schema-locks.ts'

type Say = (line: string) => void

const BEYOND = 'pets_beyond'

/** The constraint that lets PostgreSQL attach a table of any size without reading it. It exists only during a move. */
const CHECK = 'pets_below_bound'

/** Longer than PostgreSQL reads a table of a billion animals. */
const MOVE_WITHIN_MS = 86_400_000

/** Resolves with undefined if the animals are one table, or partitioned in another way. */
export async function readPartitions(sql: Database): Promise<Partitions | undefined> {
  const [last] = await sql<{ count: number; size: bigint | null; end: bigint }[]>`
    SELECT count(*) OVER ()::int AS count, bounds[2]::bigint - bounds[1]::bigint AS size, bounds[2]::bigint AS end
    FROM pg_inherits JOIN pg_class ON oid = inhrelid,
      regexp_match(pg_get_expr(relpartbound, oid), $$FROM [(]'(-?[0-9]+)'[)] TO [(]'(-?[0-9]+)'[)]$$) AS bounds
    WHERE inhparent = to_regclass('pets') ORDER BY 3 DESC NULLS LAST LIMIT 1`
  if (!last?.size) return undefined
  const { count, size, end } = last
  const { newest, highest } = await readNewest(sql)
  return { count, size, end, newest, ahead: Number(end - 1n - newest) / Number(size), hasBeyond: highest >= end }
}

/** The highest id that an animal has, and the highest that one has or was given. */
async function readNewest(sql: Database): Promise<{ highest: bigint; newest: bigint }> {
  const [row] = await sql<{ highest: bigint; newest: bigint }[]>`
    SELECT coalesce(max(id), 0) AS highest,
      greatest(max(id), (SELECT last_value FROM pg_sequences
        WHERE format('%I.%I', schemaname, sequencename) = pg_get_serial_sequence('pets', 'id')), 0) AS newest FROM pets`
  return row!
}

export function postgresPartitions(pool: Pool, pgbouncer: boolean): PartitionStore {
  const store: PartitionStore = {
    known: undefined,
    shards: undefined,

    async read() {
      store.shards = await pool.read(readShards)
      return (store.known = await pool.read(readPartitions))
    },

    async keepAhead() {
      // What keeps the tables locked now may be gone in ten seconds.
      await pool
        .write((sql) => withBriefLocks(sql, keepAhead, 1))
        .catch((error: Error) => {
          if (!isLockTimeout(error.cause)) throw error
        })
      return store.read()
    },

    split: (size, say) => move((sql) => splitNow(sql, size, say), say),

    distribute: (shards, say) => move((sql) => distribute(sql, shards, say), say),
  }

  async function move(work: (sql: Database) => Promise<number>, say: Say): Promise<number> {
    if (pgbouncer)
      throw new PartitionRefused(
        "The move needs one session, which it can't have through PgBouncer. Run the command once with the address of PostgreSQL itself.",
      )
    const lockedMs = await pool
      .writeWithin(MOVE_WITHIN_MS, async (sql) => {
        const obstacle = (await findMigrationObstacle(sql))?.found
        if (obstacle) throw new PartitionRefused(`PostgreSQL: ${obstacle}. Run the command as the owner of the tables.`)
        for (let isTold = false; ; isTold = true) {
          const done = await withLock(sql, () => work(sql))
          if (done !== undefined) return done
          if (!isTold) say('Another process migrates, partitions or distributes; waiting for it.')
          await setTimeout(1000)
        }
      })
      .catch((error: unknown) => {
        if (sqlState(error) === undefined) throw asStoreFailure(error)
        const said = `PostgreSQL: ${explain(error)}. No animal was moved; when that is fixed, run the command again.`
        throw new PartitionRefused(said, { cause: error })
      })
    await store.read()
    return lockedMs
  }
  return store
}

/** Makes the next partition if less than a whole one is left, in one process at a time, and clears up after a killed move. */
async function keepAhead(sql: Database): Promise<void> {
  if ((await findMigrationObstacle(sql)) || !(await tryLock(sql))) return
  await becomeOwner(sql)
  const left = await findCheck(sql)
  if (left) await sql.unsafe(`ALTER TABLE ${left} DROP CONSTRAINT ${CHECK}`)
  const { end, size, ahead, hasBeyond } = (await readPartitions(sql)) ?? { end: 0n, size: 0n, ahead: 1 }
  if (ahead < 1 && !hasBeyond) await addPartition(sql, end, size)
}

/** Resolves with the table that a move is checking. If it was killed, creates would fail when they reach the bound of the check. */
export async function findCheck(sql: Database): Promise<string | undefined> {
  const [left] = await sql<{ on: string }[]>`
    SELECT conrelid::regclass::text AS on FROM pg_constraint
    WHERE conname = ${CHECK} AND conrelid IN (to_regclass('pets'), to_regclass(${BEYOND}))`
  return left?.on
}

/** Until the end of the transaction, new tables belong to the owner of the animals, whoever makes them. */
async function becomeOwner(sql: Database): Promise<void> {
  await sql`
    SELECT set_config('role', pg_get_userbyid(relowner), TRUE) FROM pg_class WHERE oid = to_regclass('pets')`
}

/** Adds an empty partition with the storage parameters of its neighbour; its indexes and triggers follow from `pets`. */
async function addPartition(sql: Database, from: bigint, size: bigint | undefined): Promise<void> {
  const name = size === undefined ? BEYOND : `pets_below_${from + size}`
  const bounds = size === undefined ? 'DEFAULT' : `FOR VALUES FROM (${from}) TO (${from + size})`
  const [like] = await sql<{ storage: string | null }[]>`
    SELECT 'WITH (' || array_to_string(reloptions, ', ') || ')' AS storage
    FROM pg_class WHERE oid = to_regclass(${`pets_below_${from}`})`
  await sql.unsafe(
    `CREATE TABLE ${name} (LIKE pets INCLUDING ALL EXCLUDING INDEXES EXCLUDING IDENTITY) ${like?.storage ?? ''}`,
  )
  await revokeDefaults(sql, name)
  await sql.unsafe(`ALTER TABLE pets ATTACH PARTITION ${name} ${bounds}`)
}

/**
 * Makes the table of the animals, or the default partition if it has animals, an ordinary partition, and adds the next one and an
 * empty default partition. Interrupted before its last transaction, it starts again.
 */
async function splitNow(sql: Database, wanted: bigint | undefined, say: Say): Promise<number> {
  const present = await readPartitions(sql)
  if (present !== undefined && !present.hasBeyond) {
    await withBriefLocks(sql, keepAhead)
    return 0
  }
  const size = present?.size ?? wanted
  if (size === undefined)
    throw new PartitionRefused('The animals are one table: say with --size how many ids a partition has.')
  const obstacles = present === undefined ? await findObstacles(sql) : []
  if (obstacles.length > 0)
    throw new PartitionRefused(`The table of the animals has what the move can't carry: ${obstacles.join(', ')}.`)
  const { newest } = present ?? (await readNewest(sql))
  // At least a whole partition ahead: until the move has ended, no id may reach the bound.
  const end = (newest / size + 2n) * size
  const [table, name] = [present === undefined ? 'pets' : BEYOND, `pets_below_${end}`]
  say(
    `${table} becomes the partition of the ids below ${end}; the next one has ${size} ids. First all ids are checked, while requests go on.`,
  )
  const check = `CHECK (${present === undefined ? '' : `id >= ${present.end} AND `}id < ${end})`
  await withLockedPets(sql, (transaction) =>
    transaction.unsafe(
      `ALTER TABLE ${table} DROP CONSTRAINT IF EXISTS ${CHECK}, ADD CONSTRAINT ${CHECK} ${check} NOT VALID`,
    ),
  )
  await sql.unsafe(`ALTER TABLE ${table} VALIDATE CONSTRAINT ${CHECK}`)
  return withLockedPets(sql, async (transaction) => {
    await becomeOwner(transaction)
    if (present === undefined) await makeParent(transaction, name)
    else
      await transaction.unsafe(`ALTER TABLE pets DETACH PARTITION ${BEYOND}; ALTER TABLE ${BEYOND} RENAME TO ${name}`)
    await transaction.unsafe(`
      ALTER TABLE pets ATTACH PARTITION ${name} FOR VALUES FROM (${present?.end ?? 'MINVALUE'}) TO (${end});
      ALTER TABLE ${name} DROP CONSTRAINT ${CHECK}`)
    await addPartition(transaction, end, size)
    await addPartition(transaction, end + size, undefined)
  })
}

/** Renames the table of the animals, and makes a partitioned one of its name with all that belongs to it, for its animals to be attached. */
async function makeParent(sql: Database, name: string): Promise<void> {
  // Nobody draws an id from now on: not even a session that has no lock on the table.
  await sql.unsafe(`ALTER SEQUENCE pets_id_seq RENAME TO ${name}_id_seq`)
  const parts = await sql<{ before: string | null; again: string }[]>`
    WITH pets AS (SELECT * FROM pg_class WHERE oid = 'pets'::regclass),
      grants AS (
        SELECT 'ON pets' AS place, (aclexplode(relacl)).* FROM pets
        UNION ALL SELECT format('(%I) ON pets', attname), (aclexplode(attacl)).* FROM pg_attribute
          WHERE attrelid = 'pets'::regclass
        UNION ALL SELECT 'ON SEQUENCE pets_id_seq', (aclexplode(relacl)).* FROM pg_class
          WHERE oid = ${`${name}_id_seq`}::text::regclass
      )
    SELECT format('ALTER INDEX %I RENAME TO %I', c.relname, ${name}::text || '_' || c.relname) AS before,
      CASE WHEN k.oid IS NULL THEN pg_get_indexdef(c.oid)
        ELSE format('ALTER TABLE pets ADD CONSTRAINT %I %s', k.conname, pg_get_constraintdef(k.oid)) END AS again
    FROM pg_index JOIN pg_class AS c ON c.oid = indexrelid
      LEFT JOIN pg_constraint AS k ON k.conindid = c.oid AND k.conrelid = indrelid
    WHERE indrelid = 'pets'::regclass
    UNION ALL SELECT format('DROP TRIGGER %I ON pets', tgname), pg_get_triggerdef(oid) FROM pg_trigger
      WHERE tgrelid = 'pets'::regclass AND NOT tgisinternal
    UNION ALL SELECT NULL, format('GRANT %s %s TO %s %s', privilege_type, place,
        CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END,
        CASE WHEN is_grantable THEN 'WITH GRANT OPTION' END)
      FROM grants
    UNION ALL SELECT NULL, format('COMMENT ON TABLE pets IS %L', obj_description(oid, 'pg_class')) FROM pets
    UNION ALL SELECT NULL, format('SELECT setval(''pets_id_seq'', %s, %L)', last_value, is_called)
      FROM ${sql(`${name}_id_seq`)}`
  await sql.unsafe(`
    ${parts.flatMap(({ before }) => before ?? []).join(';')};
    ALTER TABLE pets RENAME TO ${name};
    CREATE TABLE pets (LIKE ${name} INCLUDING ALL EXCLUDING INDEXES) PARTITION BY RANGE (id);
    ALTER TABLE pets DROP CONSTRAINT ${CHECK};
    ALTER TABLE ${name} ALTER id DROP IDENTITY`)
  for (const each of ['pets', 'pets_id_seq']) await revokeDefaults(sql, each)
  await sql.unsafe(parts.map(({ again }) => again).join(';'))
}

/** Takes back what ALTER DEFAULT PRIVILEGES has granted on a new table or sequence: those on the table of before count. */
async function revokeDefaults(sql: Database, name: string): Promise<void> {
  const revokes = await sql<{ statement: string }[]>`
    SELECT DISTINCT format('REVOKE ALL ON %s %s FROM %s', CASE relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, relname,
      CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END) AS statement
    FROM pg_class, aclexplode(relacl) WHERE oid = ${name}::text::regclass AND grantee <> relowner`
  if (revokes.length > 0) await sql.unsafe(revokes.map(({ statement }) => statement).join(';'))
}

/** Resolves with what stands on the table, or depends on it, and would be lost or go on with the first partition alone. */
async function findObstacles(sql: Database): Promise<string[]> {
  const found = await sql<{ name: string }[]>`
    WITH pets AS (SELECT * FROM pg_class WHERE oid = 'pets'::regclass)
    SELECT pg_describe_object(classid, objid, 0) AS name FROM pg_depend
      WHERE deptype = 'n' AND classid NOT IN ('pg_trigger'::regclass, 'pg_attrdef'::regclass)
        AND refobjid IN (SELECT oid FROM pets UNION SELECT t.oid FROM pg_type AS t, pets WHERE reltype IN (t.oid, typelem))
        AND objid NOT IN (SELECT oid FROM pg_constraint WHERE conrelid = 'pets'::regclass)
    UNION SELECT pg_describe_object('pg_constraint'::regclass, oid, 0) FROM pg_constraint
      WHERE conrelid = 'pets'::regclass AND contype NOT IN ('c', 'n', 'p', 'u')
    UNION SELECT pg_describe_object('pg_class'::regclass, indexrelid, 0) FROM pg_index
      WHERE indrelid = 'pets'::regclass AND (NOT indisvalid OR indisunique AND NOT (1 = ANY (indkey)))
    UNION SELECT pg_describe_object('pg_trigger'::regclass, oid, 0) FROM pg_trigger
      WHERE tgrelid = 'pets'::regclass AND NOT tgisinternal AND tgenabled <> 'O'
    UNION SELECT 'publication ' || pubname FROM pg_publication_tables
      WHERE schemaname = current_schema() AND tablename = 'pets'
    UNION SELECT 'shards of Citus' FROM pg_trigger
      WHERE tgrelid = 'pets'::regclass AND tgfoid = to_regproc('citus_truncate_trigger')
    UNION SELECT 'row-level security' FROM pets
      WHERE relrowsecurity OR EXISTS (SELECT FROM pg_policy WHERE polrelid = pets.oid)`
  return found.map(({ name }) => name)
}

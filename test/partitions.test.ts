// Animals in partitions by id on PostgreSQL: the move while the service runs, and the partition ahead.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { inspect } from 'node:util'
import { until } from '../assurance/harness/until.ts'
import { INT64_MAX, INT64_MIN } from '../src/contract/int64.ts'
import { PET_STATUSES } from '../src/contract/pets.ts'
import type { Check } from '../src/store/check.ts'
import type { PetList } from '../src/store/pet-list.ts'
import { parseConnection } from '../src/store/postgres/connection-settings.ts'
import { Pool } from '../src/store/postgres/pool.ts'
import type { Store } from '../src/store/store.ts'
import { startPetstore } from './harness.ts'
import { petstore } from './in-process-command.ts'
import { openAt, type OpenPostgres, openPostgres, rex } from './open-postgres.ts'

const SIZE = 1000n
const INSERT = 'INSERT INTO pets (name, category_id, status)'

/** Moves the animals into partitions; resolves with what the command said. */
async function split({ store }: { store: Store }, size = SIZE): Promise<string[]> {
  const said: string[] = []
  await store.partitions!.split(size, (line) => said.push(line))
  return said
}

const directAddress = ({ sql }: OpenPostgres) =>
  `postgres://petstore:${encodeURIComponent(String(sql.options.pass))}@${sql.options.host[0]}:${sql.options.port[0]}/${sql.options.database}`

async function schemaOf({ sql }: OpenPostgres): Promise<unknown> {
  const [found] = await sql`
    SELECT relowner::regrole::text AS owner, relacl::text AS grants, obj_description(c.oid) AS comment,
      (SELECT relacl::text FROM pg_class WHERE relname = 'pets_id_seq') AS "sequence",
      (SELECT jsonb_agg(jsonb_build_array(attname, attnotnull, attidentity, attacl::text, col_description(c.oid, attnum),
        format_type(atttypid, atttypmod), attcollation, attstorage) ORDER BY attnum)
       FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0) AS columns,
      (SELECT jsonb_agg(replace(pg_get_indexdef(indexrelid), ' ONLY ', ' ') ORDER BY indexrelid::regclass::text)
       FROM pg_index WHERE indrelid = c.oid AND indisvalid) AS indexes,
      (SELECT jsonb_agg(pg_get_constraintdef(k.oid) ORDER BY conname) FROM pg_constraint AS k WHERE conrelid = c.oid) AS constraints,
      (SELECT jsonb_agg(pg_get_triggerdef(t.oid) ORDER BY tgname) FROM pg_trigger AS t WHERE tgrelid = c.oid) AS triggers
    FROM pg_class AS c WHERE oid = 'pets'::regclass`
  return found
}

describe('The move into partitions', { concurrency: false, timeout: 300_000 }, () => {
  it('keeps every animal, all that the owner has put on the table, and the next id', async () => {
    await using opened = await openPostgres()
    const { sql, store } = opened
    await store.pets.createMany(Array.from({ length: 30 }, () => rex))
    await sql.unsafe(`${INSERT.replace('(name', '(id, name')} VALUES (-9223372036854775808, 'Lowest', 1, 'sold')`)
    // Another role than the one that runs the move.
    const owner = 'pg_read_all_stats'
    await sql.unsafe(`
      GRANT CREATE ON SCHEMA public TO ${owner}; ALTER TABLE pets OWNER TO ${owner};
      GRANT SELECT ON pets TO pg_monitor WITH GRANT OPTION; GRANT UPDATE (name) ON pets TO PUBLIC;
      GRANT USAGE ON SEQUENCE pets_id_seq TO pg_monitor;
      ALTER DEFAULT PRIVILEGES FOR ROLE ${owner} GRANT INSERT ON TABLES TO pg_read_all_data;
      COMMENT ON TABLE pets IS 'It''s ours'; COMMENT ON COLUMN pets.name IS 'as sent';
      ALTER TABLE pets SET (autovacuum_vacuum_insert_threshold = 1000, fillfactor = 90);
      CREATE INDEX "Own ""index""" ON pets (lower(name)) WHERE status = 'sold'`)
    const [before, animals] = [await schemaOf(opened), await sql`SELECT * FROM pets ORDER BY id`]
    const said = await split(opened)
    assert.match(said.join(), /^pets becomes the partition of the ids below 2000; the next one has 1000 ids/)
    assert.deepEqual(await schemaOf(opened), before)
    assert.deepEqual([...(await sql`SELECT * FROM pets ORDER BY id`)], [...animals])
    assert.deepEqual(await store.pets.create(rex), { outcome: 'created', pet: { id: 31n, ...rex } })
    const parts = await sql`
      SELECT relname AS name, reloptions::text AS options, relowner::regrole::text AS owner,
        relacl::text LIKE '%pg_read_all_data%' AS leaked
      FROM pg_inherits JOIN pg_class ON oid = inhrelid WHERE inhparent = 'pets'::regclass ORDER BY 1`
    const options = '{autovacuum_vacuum_insert_threshold=1000,fillfactor=90}'
    assert.deepEqual(
      parts.map((part) => [part['name'], part['options'], part['owner'], part['leaked'] ?? false]),
      ['pets_below_2000', 'pets_below_3000', 'pets_beyond'].map((name) => [name, options, owner, false]),
    )
    const [left] = await sql`SELECT count(*)::int AS checks FROM pg_constraint WHERE conname = 'pets_below_bound'`
    assert.equal(left!['checks'], 0)
  })

  it('breaks no request of a running instance, whose statements are prepared', async () => {
    await using opened = await openPostgres('pool_size=4')
    const other = await openAt(opened.url)
    const moved = new AbortController()
    const ids: bigint[] = []
    const use = async ({ pets }: Store) => {
      while (!moved.signal.aborted || ids.length < 100) {
        const created = await pets.create(rex)
        ids.push('pet' in created ? created.pet.id : -1n)
        await pets.createMany([rex, rex])
        const [newest] = await pets.list({ limit: 1, status: 'available' })
        assert.ok(newest!.id >= ids.at(-1)! - 8n)
        assert.ok(await pets.get(ids.at(-1)!))
      }
    }
    const using_ = Promise.all([use(opened.store), use(opened.store), use(other)])
    await until(async () => ids.length > 20, 'animals are added')
    await split(opened, 1_000_000n)
    moved.abort()
    await using_
    await other.close()
    const [counted] = await opened.sql`SELECT count(*)::int AS all, max(id)::int AS last FROM pets`
    assert.deepEqual({ ...counted }, { all: 3 * ids.length, last: 3 * ids.length })
    assert.equal(new Set(ids).size, ids.length)
  })

  for (const step of [
    'NOT VALID',
    'VALIDATE',
    'RENAME TO pets_below',
    'PARTITION BY',
    'ADD CONSTRAINT pets_pkey',
    'ATTACH',
    'DEFAULT',
  ])
    it(`can be killed at "${step}", harms nothing, and is done when it is run again`, async () => {
      await using opened = await openPostgres()
      const { sql, store } = opened
      await sql.unsafe(`
        CREATE FUNCTION stop_here() RETURNS event_trigger LANGUAGE plpgsql AS $$
        BEGIN
          IF current_query() LIKE '%${step}%' THEN PERFORM pg_sleep(600); END IF;
        END
        $$;
        CREATE EVENT TRIGGER stop_here ON ddl_command_start EXECUTE FUNCTION stop_here()`)
      await store.pets.create(rex)
      const killed = assert.rejects(split(opened))
      const sleeping = () => sql<{ pid: number }[]>`
        SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'`
      await until(async () => (await sleeping()).length > 0, 'it has come to the step')
      if (step === 'VALIDATE') {
        await store.partitions!.keepAhead()
        const check = await sql`SELECT FROM pg_constraint WHERE conname = 'pets_below_bound'`
        assert.equal(check.length, 1, 'the chore leaves the check of a running move')
      }
      await sql`SELECT pg_terminate_backend(${(await sleeping())[0]!.pid})`
      await killed
      await sql`DROP EVENT TRIGGER stop_here`
      assert.equal((await store.pets.create(rex)).outcome, 'created')
      await split(opened)
      assert.deepEqual(
        (await store.pets.list({ limit: 5 })).map(({ id }) => id),
        [2n, 1n],
      )
      assert.equal(store.partitions!.known?.count, 3)
    })

  it('lets requests pass while a long read keeps it from the tables, and tries again', async () => {
    await using opened = await openPostgres()
    const release = await opened.lock('SELECT FROM pets')
    const moved = split(opened)
    const waits = async () => (await opened.sql`SELECT FROM pg_locks WHERE NOT granted`).length > 0
    await until(waits, 'it waits for the lock')
    await until(async () => !(await waits()), 'it has given up for a moment')
    assert.equal((await opened.store.pets.create(rex)).outcome, 'created')
    await release()
    await moved
    assert.equal(opened.store.partitions!.known?.count, 3)
  })

  it('lets PostgreSQL cancel an autovacuum of the table, which a brief wait for its lock does not, and requests pass', async () => {
    await using opened = await openPostgres()
    const release = await opened.lock('LOCK TABLE pets IN SHARE UPDATE EXCLUSIVE MODE')
    const moved = split(opened)
    const waits = async () => (await opened.sql`SELECT mode FROM pg_locks WHERE NOT granted`)[0]?.['mode'] as string
    await until(async () => (await waits()) !== undefined, 'it waits')
    assert.equal(await waits(), 'ShareUpdateExclusiveLock')
    assert.equal((await opened.store.pets.create(rex)).outcome, 'created')
    await release()
    await moved
  })

  it('leaves no check behind, which creates would fail at: doctor names that of a killed one, the chore removes it', async () => {
    await using opened = await openPostgres()
    await opened.sql.unsafe('ALTER TABLE pets ADD CONSTRAINT pets_below_bound CHECK (id < 1) NOT VALID')
    const { stdout } = await petstore(['doctor', '--database', opened.url])
    assert.match(stdout, /warning +Partitions +the command partition is running, or was interrupted/)
    assert.equal(await opened.store.partitions!.keepAhead(), undefined)
    assert.equal((await opened.store.pets.create(rex)).outcome, 'created')
  })

  it('is made by one of two commands that start at once; the other one waits, and says that it is done', async () => {
    await using opened = await openPostgres()
    const run = () => petstore(['partition', '--size', '1000000', '--json', '--database', opened.url])
    const both = await Promise.all([run(), run()])
    assert.deepEqual(
      both.map(({ code }) => code),
      [0, 0],
      both.map(({ stderr }) => stderr).join(),
    )
    const waited = both.map(({ stdout }) => (JSON.parse(stdout) as { lockedMs: number }).lockedMs > 0)
    assert.notEqual(waited[0], waited[1])
    assert.match((await petstore(['partition', '--database', opened.url])).stderr, /in partitions already.*There are 3/)
  })

  const refused = [
    ['CREATE VIEW shown AS SELECT name FROM pets', 'rule _RETURN on view shown'],
    ['CREATE FUNCTION f() RETURNS SETOF pets LANGUAGE sql AS $$ SELECT * FROM pets $$', 'function f()'],
    ['CREATE TABLE toys (pet BIGINT REFERENCES pets)', 'constraint toys_pet_fkey on table toys'],
    [
      "INSERT INTO categories VALUES (3, 'Cats', 'cats'); ALTER TABLE pets ADD FOREIGN KEY (category_id) REFERENCES categories NOT VALID",
      'constraint pets_category_id_fkey on table pets',
    ],
    ['CREATE TABLE old_pets () INHERITS (pets)', 'table old_pets'],
    ['CREATE UNIQUE INDEX one_name ON pets (name)', 'index one_name'],
    ['ALTER TABLE pets DISABLE TRIGGER pets_rename', 'trigger pets_rename on table pets'],
    ['CREATE PUBLICATION news FOR ALL TABLES', 'publication news'],
    ['ALTER TABLE pets ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON pets USING (TRUE)', 'row-level security'],
  ]
  it('refuses by name what it would lose, and changes nothing', async () => {
    for (const [statement, name] of refused) {
      await using opened = await openPostgres()
      await opened.sql.unsafe(statement!)
      const env = { DATABASE_URL: opened.url }
      const { code, stderr } = await petstore(['partition', '--size', '1000000'], { env })
      assert.deepEqual(
        [code, stderr],
        [1, `petstore: The table of the animals has what the move can't carry: ${name}.\n`],
      )
      assert.equal((await opened.store.pets.create(rex)).outcome, 'created')
    }
  })

  it('ends with what PostgreSQL says where it fails, and can be run again', async () => {
    await using opened = await openPostgres()
    await opened.sql.unsafe(`
      CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not today'; END $$;
      CREATE EVENT TRIGGER refuse ON ddl_command_start WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION refuse()`)
    const run = () => petstore(['partition', '--size', '1000000', '--database', opened.url])
    const { code, stderr } = await run()
    assert.equal(code, 1)
    assert.match(stderr, /petstore: PostgreSQL: not today. No animal was moved; .*run the command again\.\n$/)
    await opened.sql`DROP EVENT TRIGGER refuse`
    assert.equal((await run()).code, 0)
  })

  it('is refused through PgBouncer, on SQLite, for a size that fills too fast, and without a size', async () => {
    await using opened = await openPostgres()
    const run = async (...words: string[]) => (await petstore(['partition', ...words])).stderr
    assert.match(
      await run('--size', '1000000', '--database', `${opened.url}pgbouncer=true`),
      /address of PostgreSQL itself/,
    )
    assert.match(await run('--size', '1000000', '--database', 'sqlite:x.db'), /SQLite has no partitions/)
    assert.match(await run('--size', '999999'), /--size must be a whole number from 1000000 to/)
    assert.match(await run('--database', opened.url), /say with --size/)
    assert.equal(await opened.store.partitions!.read(), undefined)
  })
})

it('A page of animals in partitions reads only that of the cursor, or two near a border, unless too few are there', async () => {
  await using opened = await openPostgres()
  await split(opened, 100n)
  for (let hundred = 0; hundred < 7; hundred += 1) {
    await opened.store.pets.createMany(
      Array.from({ length: 100 }, (_, nth) => ({ ...rex, status: hundred + nth === 0 ? 'sold' : 'available' })),
    )
    await opened.store.partitions!.keepAhead()
  }
  await opened.store.close()
  /** The page, and the partitions whose index on the status is read for it. */
  const readFor = async (status: 'available' | 'sold', place: { before?: bigint; after?: bigint }) => {
    await opened.sql`SELECT pg_stat_reset()`
    const store = await openAt(opened.url)
    const ids = (await store.pets.list({ status, limit: 3, ...place })).map(({ id }) => Number(id))
    await store.close()
    // A process of PostgreSQL reports what it has read at its end.
    await until(async () => (await opened.backends()).length === 0, 'its connections have ended')
    const read = await opened.sql<{ name: string }[]>`
      SELECT relname AS name FROM pg_stat_user_indexes WHERE indexrelname LIKE '%status%' AND idx_scan > 0
        AND indexrelname NOT LIKE '%category%' ORDER BY indexrelid`
    return [ids.join(), read.map(({ name }) => name.replace('pets_below_', '')).join()]
  }
  assert.deepEqual(await readFor('available', { before: 355n }), ['354,353,352', '400'])
  assert.deepEqual(await readFor('available', { before: 305n }), ['304,303,302', '300,400'])
  assert.deepEqual(await readFor('available', { after: 355n }), ['358,357,356', '400'])
  assert.deepEqual(await readFor('available', { after: 395n }), ['398,397,396', '400,500'])
  assert.deepEqual(await readFor('sold', { before: 355n }), ['1', '200,300,400'])
  const pool = new Pool(parseConnection(opened.url))
  const [mode] = await pool.read((sql) => sql`SHOW plan_cache_mode`)
  await pool.end()
  assert.equal(mode!['plan_cache_mode'], 'force_generic_plan', 'a page is not planned each time')
  assert.deepEqual(await readFor('available', {}), ['700,699,698', 'pets_beyond,700,800,900'])
})

it('A list of animals in partitions is that of one table: at borders, over gaps and empty partitions, in both directions', async () => {
  await using opened = await openPostgres()
  await split(opened, 20n)
  for (const id of [50, 70, 90]) {
    await opened.sql`SELECT setval('pets_id_seq', ${id})`
    await opened.store.partitions!.keepAhead()
  }
  const ids = [500n, 140n, 101n, 61n, 60n, 41n, 40n, 39n, 38n, 21n, 20n, 19n, 2n, 1n, 0n, -1n, -20n, INT64_MIN]
  const animals = ids.map((id, nth) => ({ ...rex, id, categoryId: BigInt(nth % 2), status: PET_STATUSES[nth % 3]! }))
  for (const { id, name, categoryId, status } of animals)
    await opened.sql`INSERT INTO pets (id, name, category_id, status) VALUES (${String(id)}, ${name}, ${String(categoryId)}, ${status})`
  await opened.store.partitions!.read()
  const places = [{}, ...[...ids, INT64_MAX, 42n, 80n].flatMap((id) => [{ before: id }, { after: id }])]
  const filters = [undefined, 'sold' as const].flatMap((status) => [{ status }, { status, categoryId: 1n }])
  const lists = [1, 3, 100].flatMap((limit) =>
    places.flatMap((place) => filters.map((filter) => ({ limit, ...place, ...filter }))),
  )
  for (const query of lists) {
    const { limit, before, after, status, categoryId }: PetList = query
    const all = animals.filter(
      (pet) =>
        (before === undefined || pet.id < before) &&
        (after === undefined || pet.id > after) &&
        pet.status === (status ?? pet.status) &&
        pet.categoryId === (categoryId ?? pet.categoryId),
    )
    const expected = after === undefined ? all.slice(0, limit) : all.slice(-limit)
    assert.deepEqual(await opened.store.pets.list(query), expected, inspect(query))
  }
})

describe('The partition ahead', { concurrency: false, timeout: 300_000 }, () => {
  /** Uses ids up to this one. */
  const useIds = ({ sql }: OpenPostgres, id: number) => sql`SELECT setval('pets_id_seq', ${id})`

  it('is made when less than a whole one is left, by one of several instances', async () => {
    await using opened = await openPostgres()
    const { store } = opened
    await split(opened)
    await useIds(opened, 1999)
    assert.equal((await store.partitions!.keepAhead())?.count, 3)
    await useIds(opened, 2000)
    const all = await Promise.all(Array.from({ length: 4 }, () => store.partitions!.keepAhead()))
    assert.deepEqual((await store.partitions!.read())!.count, 4)
    assert.ok(all.some((found) => found?.end === 4000n))
    await opened.sql`CREATE TABLE by_hand PARTITION OF pets FOR VALUES FROM (4000) TO (6000)`
    await useIds(opened, 4500)
    assert.equal((await store.partitions!.keepAhead())?.end, 8000n, 'after one that was made by hand')
  })

  it('is made in any schema, but not by an instance whose role does not own the tables, which goes on', async () => {
    await using opened = await openPostgres()
    const { sql } = opened
    const role = `clerk_${sql.options.database.slice(-8)}`
    await sql.unsafe(`
      CREATE SCHEMA "Shop 1"; ALTER DATABASE ${sql.options.database} SET search_path = "Shop 1", public;
      CREATE ROLE ${role} LOGIN PASSWORD 'clerk'; GRANT USAGE ON SCHEMA "Shop 1" TO ${role}`)
    const owner = await openAt(opened.url)
    await sql.unsafe(`
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "Shop 1" TO ${role};
      GRANT USAGE ON ALL SEQUENCES IN SCHEMA "Shop 1" TO ${role}`)
    const clerk = await openAt(opened.url.replace(/petstore:[^@]*@/, `${role}:clerk@`))
    await split({ store: owner })
    await sql`SELECT setval('"Shop 1".pets_id_seq', 2500)`
    assert.equal((await clerk.partitions!.keepAhead())?.count, 3)
    await assert.rejects(split({ store: clerk }), /does not own its tables\. Run the command as the owner/)
    assert.equal((await owner.partitions!.keepAhead())?.count, 4)
    assert.equal((await clerk.pets.create(rex)).outcome, 'created')
    assert.deepEqual(await clerk.pets.list({ limit: 5 }), [{ id: 2501n, ...rex }])
    await sql.unsafe(`REVOKE USAGE ON SEQUENCE "Shop 1".pets_id_seq FROM ${role}`)
    assert.equal(
      (await clerk.partitions!.read())?.newest,
      2501n,
      'a role that only reads needs no right on the sequence',
    )
    await Promise.all([owner.close(), clerk.close()])
  })

  it('makes no create wait, though a long read keeps it from being made', async () => {
    await using opened = await openPostgres()
    const { store } = opened
    await split(opened)
    await useIds(opened, 2500)
    const release = await opened.lock('SELECT FROM pets')
    let isTried = false
    const attempt = store.partitions!.keepAhead().finally(() => (isTried = true))
    const waits = () => opened.sql`
      SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'pets_beyond'::regclass`
    await until(async () => isTried || (await waits()).length > 0, 'it waits')
    const started = performance.now()
    for (let nth = 0; nth < 20; nth += 1) await store.pets.create(rex)
    assert.ok(performance.now() - started < 4000)
    assert.equal((await attempt)?.count, 3)
    await release()
    assert.equal((await store.partitions!.keepAhead())?.count, 4)
  })

  it('missing, as where no instance makes it: animals go beyond, nothing fails, and log, doctor and metrics say so until partition is run', async () => {
    await using opened = await openPostgres()
    const { sql, store } = opened
    await split(opened)
    await useIds(opened, 2990)
    for (let nth = 0; nth < 20; nth += 1) await store.pets.create(rex)
    const url = directAddress(opened)
    const doctor = async () => {
      const { stdout } = await petstore(['doctor', '--json', '--database', url])
      return (JSON.parse(stdout) as { checks: Check[] }).checks.find(({ name }) => name === 'Partitions')
    }
    assert.equal((await store.partitions!.keepAhead())?.hasBeyond, true, 'the chore does not break on them')
    const found = await doctor()
    assert.deepEqual([found?.state, found?.found], ['warning', 'animals are beyond the last partition'])
    await using service = await startPetstore({ database: url, env: { PETSTORE_ADMIN_PORT: '0' } })
    const metrics = async () => (await fetch(`${service.adminUrl}/metrics`)).text()
    await until(
      () => service.logged.some(({ msg }) => /beyond the last partition; run the command partition/.test(String(msg))),
      'it is logged',
    )
    assert.match(await metrics(), /petstore_partitions_ahead{table="pets"} -0\.01/)
    const { code, stderr } = await petstore(['partition', '--database', url])
    assert.equal(code, 0, stderr)
    assert.match(stderr, /pets_beyond becomes the partition of the ids below 5000/)
    assert.deepEqual(await doctor(), { name: 'Partitions', state: 'ok', found: '5 of 1000 ids, 3.0 ahead' })
    const [counts] = await sql`
      SELECT count(*)::int AS all, count(*) FILTER (WHERE tableoid = 'pets_beyond'::regclass)::int AS beyond FROM pets`
    assert.deepEqual({ ...counts }, { all: 20, beyond: 0 })
    assert.deepEqual(await store.pets.create(rex), { outcome: 'created', pet: { id: 3011n, ...rex } })
  })
})

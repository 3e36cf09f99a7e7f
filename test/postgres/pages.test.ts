// Where a database refuses to read the pages of one turn together, as Citus does once animals are distributed, it reads each alone.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import connectTo from 'postgres'
import { postgres } from '../harness/databases/engines.ts'
import { samplePet } from '../harness/databases/sample-pet.ts'
import { readConfig } from '../../src/config.ts'
import { openStore } from '../../src/store/opening/open-store.ts'

/** Refuses such a statement with the SQLSTATE of Citus, in place of the table of animals. */
const REFUSE = `
  ALTER TABLE pets RENAME TO all_pets;
  CREATE SEQUENCE refusals;
  CREATE FUNCTION is_plain() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
    IF current_query() NOT LIKE '%LATERAL%' THEN RETURN TRUE; END IF;
    PERFORM nextval('refusals');
    RAISE SQLSTATE '0A000';
  END $$;
  CREATE VIEW pets AS SELECT * FROM all_pets WHERE is_plain()`

it('Pages that the database does not read together are read one by one, from the first refusal on', async () => {
  await using database = await postgres.newDatabase()
  const store = await openStore(readConfig({ database: database.url }, {}).database)
  await store.pets.createMany([samplePet, samplePet, samplePet])
  const queries = [4n, 3n, 2n].map((before) => ({ before, limit: 5 }))
  const read = () => Promise.all(queries.map((query) => store.pets.list(query, 'json')))
  const together = await read()
  assert.deepEqual(
    together.map(({ count }) => count),
    [3, 2, 1],
  )
  const sql = connectTo(database.url, { max: 1 })
  await sql.unsafe(REFUSE)
  assert.deepEqual(await read(), together)
  assert.deepEqual(await read(), together)
  assert.deepEqual([...(await sql`SELECT last_value::int AS refused FROM refusals`)], [{ refused: 1 }])
  await store.close()
  await sql.end()
})

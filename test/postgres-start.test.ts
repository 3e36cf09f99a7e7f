// Starts on PostgreSQL: one instance migrates and the others wait, each schema on its own, with limits the server knows.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import connectTo from 'postgres'
import { readConfig } from '../src/config.ts'
import { parseConnection } from '../src/store/postgres/connection-settings.ts'
import { Pool } from '../src/store/postgres/pool.ts'
import { openStore } from '../src/store/open-store.ts'
import { CannotOpenStore, NoDatabase } from '../src/store/store.ts'
import { readSchema } from './database-schema.ts'
import { askPostgres } from '../assurance/harness/ask-postgres.ts'
import { postgres, withParameters } from '../assurance/harness/engines.ts'
import { until } from '../assurance/harness/until.ts'

const open = (url: string) => openStore(readConfig({ database: url }, {}).database)

describe('a start on PostgreSQL', { timeout: 120_000 }, () => {
  it('waits while another instance migrates, for longer than any statement may take', async () => {
    await using database = await postgres.newDatabase()
    const sql = connectTo(database.url, { max: 2 })
    let started: ReturnType<typeof open> | undefined
    await sql.begin(async (migrating) => {
      await migrating`SELECT pg_advisory_xact_lock(${0x50455453})`
      started = open(withParameters(database.url, 'statement_timeout=500'))
      await Promise.race([
        started,
        until(
          async () =>
            (
              await sql`SELECT 1 FROM pg_stat_activity WHERE query LIKE '%pg_try_advisory%' AND pid <> pg_backend_pid() AND datname = current_database()`
            ).length > 0,
          'it asks for the lock',
        ),
      ])
      await sql`SELECT pg_sleep(2)`
      assert.equal((await sql`SELECT 1 FROM pg_tables WHERE tablename = 'pets'`).length, 0)
    })
    await (await started!).close()
    await sql.end()
  })

  it('makes no tables in an empty database for who only wants to read, and says so', async () => {
    await using database = await postgres.newDatabase()
    const { host, pathname } = new URL(database.url)
    await assert.rejects(
      openStore(readConfig({ database: database.url }, {}).database, { create: false }),
      (error) =>
        error instanceof NoDatabase &&
        error.message.startsWith(`There is no petstore database at PostgreSQL at ${host}${pathname}. `),
    )
    assert.deepEqual(await readSchema(database.url), {})
  })

  it('migrates the schema that is its own, whatever another schema of the database holds', async () => {
    await using database = await postgres.newDatabase()
    const first = await open(database.url)
    await first.pets.createMany([{ name: 'Rex', categoryId: 3n, status: 'sold' }])
    await first.setUnfinishedCopy(true)
    await first.close()
    const sql = connectTo(database.url, { max: 1 })
    await sql`CREATE SCHEMA shop`
    await sql.unsafe(`ALTER DATABASE ${sql.options.database} SET search_path = shop`)
    await sql.end()
    const second = await open(database.url)
    assert.deepEqual(await second.pets.countByStatus(), { available: 0, pending: 0, sold: 0 })
    await second.close()
  })

  it('tells the server its limits and its name; behind PgBouncer, which takes no limits, only its name', async () => {
    await using database = await postgres.newDatabase()
    const told = async (parameters: string) => {
      const pool = new Pool(
        parseConnection(withParameters(database.url, `application_name=shop&statement_timeout=1234&${parameters}`)),
      )
      const [row] = await pool.read(
        (sql) => sql`
        SELECT current_setting('application_name') AS name, current_setting('statement_timeout') AS statement,
          current_setting('idle_in_transaction_session_timeout') AS idle, EXISTS (SELECT 1 FROM pg_prepared_statements) AS prepared`,
      )
      await pool.end()
      return row
    }
    assert.deepEqual({ ...(await told('')) }, { name: 'shop', statement: '1234ms', idle: '2468ms', prepared: true })
    assert.deepEqual(
      { ...(await told('pgbouncer=true')) },
      { name: 'shop', statement: '0', idle: '0', prepared: false },
    )
  })

  it('takes the user, password and database that an address leaves out from PGUSER, PGPASSWORD and PGDATABASE', async () => {
    await using database = await postgres.newDatabase()
    const { host, pathname } = new URL(database.url)
    const role = `left_out_${crypto.randomUUID().replaceAll('-', '')}`
    await askPostgres(database.url, `CREATE ROLE ${role} LOGIN PASSWORD 'left out'`)
    const left = { PGUSER: role, PGPASSWORD: 'left out', PGDATABASE: pathname.slice(1) }
    const earlier = { ...process.env }
    Object.assign(process.env, left)
    const pool = new Pool(parseConnection(`postgres://${host}`))
    try {
      const [row] = await pool.read((sql) => sql`SELECT current_user AS user, current_database() AS database`)
      assert.deepEqual({ ...row }, { user: left.PGUSER, database: left.PGDATABASE })
    } finally {
      for (const name of Object.keys(left)) delete process.env[name]
      Object.assign(process.env, earlier)
      await pool.end()
      await askPostgres(database.url, `DROP ROLE ${role}`)
    }
  })

  it('says why each address of a host did not answer, and what PgBouncer needs', async () => {
    const refuses = (url: string, message: RegExp) =>
      assert.rejects(open(url), (error) => error instanceof CannotOpenStore && message.test(error.message))
    await refuses('postgres://me@localhost:1/pets', /localhost:1: .*ECONNREFUSED 127\.0\.0\.1:1/)
    // PgBouncer's answer to a setting that it does not know.
    const fields = 'SFATAL\0C08P01\0Munsupported startup parameter: statement_timeout\0\0'
    const size = Buffer.alloc(4)
    size.writeInt32BE(fields.length + 4)
    const bouncer = createServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', () => socket.end(Buffer.concat([Buffer.from('E'), size, Buffer.from(fields)])))
    }).listen(0, '127.0.0.1')
    await once(bouncer, 'listening')
    await refuses(
      `postgres://me@127.0.0.1:${(bouncer.address() as AddressInfo).port}/pets?sslmode=disable`,
      /add pgbouncer=true to the address/,
    )
    bouncer.close()
    await once(bouncer, 'close')
  })
})

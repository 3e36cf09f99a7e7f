// Starts on PostgreSQL: what an address may say, who answers there, one instance migrates while the others wait, and a start that
// is refused leaves no connection. How an address is read: src/store/postgres/pool/connection-settings.test.ts.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { createServer as createTlsServer, rootCertificates } from 'node:tls'
import connectTo from 'postgres'
import { askPostgres } from '../harness/databases/ask-postgres.ts'
import { postgres, withParameters } from '../harness/databases/engines.ts'
import { startPostgres } from '../harness/databases/postgres-server.ts'
import { CERTIFICATE, KEY } from '../harness/connections/test-certificate.ts'
import { until } from '../harness/until.ts'
import { createReadiness, Lifecycle } from '../../src/http/lifecycle.ts'
import { openForServing } from '../../src/store/opening/open-for-serving.ts'
import { parseConnection } from '../../src/store/postgres/pool/connection-settings.ts'
import type { Database } from '../../src/store/postgres/pool/connection.ts'
import { Pool } from '../../src/store/postgres/pool.ts'
import { CannotOpenStore, NoDatabase } from '../../src/store/store.ts'
import { readSchema } from '../harness/databases/database-schema.ts'
import { openAt as open, openPostgres } from '../harness/databases/open-postgres.ts'

/** Asserts that opening fails with this message, and is not reported as a lost database beside that. */
async function refuses(url: string, message: RegExp): Promise<void> {
  const reported: unknown[] = []
  await assert.rejects(
    open(url, { report: (event) => reported.push(event) }),
    (error) => error instanceof CannotOpenStore && message.test(error.message) && !error.message.includes('secret'),
  )
  assert.deepEqual(reported, [])
}

/** Resolves with what /readyz says of a service that was started with this address. */
async function readyzSays(url: string): Promise<string | undefined> {
  const { store, opened } = await openForServing(
    { engine: 'postgres', url },
    { processes: 1, environment: 'staging', isChosen: true, report: () => {}, onBroken: () => {} },
  )
  const said = await createReadiness(store, new Lifecycle())()
  await store.close()
  await opened
  return said
}

/** Resolves with the row that a pool with this address reads. */
async function ask(url: string, read: (sql: Database) => PromiseLike<object[]>): Promise<object> {
  const pool = new Pool(parseConnection(url))
  try {
    const [row] = await pool.read(async (sql) => read(sql))
    return { ...row }
  } finally {
    await pool.end()
  }
}

describe('opening PostgreSQL', () => {
  it('is refused, changes nothing and leaves no connection where the database can not be used', async () => {
    await using opened = await openPostgres()
    const { sql, store } = opened
    await store.setUnfinishedCopy(true)
    await store.close()
    const database = sql.options.database
    const reasons: [prepare: string, parameters: string, message: RegExp][] = [
      ['SELECT 1', '', /a copy that was interrupted/],
      [
        `ALTER DATABASE ${database} SET default_transaction_read_only = on`,
        'target_session_attrs=read-write',
        /it is read-only: a standby/,
      ],
      [
        `ALTER DATABASE ${database} RESET default_transaction_read_only;
         INSERT INTO store_migrations VALUES (99, 'from the future', 99, '', 0)`,
        '',
        /schema version 99, this program knows only up to/,
      ],
      [
        'DROP SCHEMA public CASCADE; CREATE SCHEMA public; CREATE TABLE pets (whatever INTEGER)',
        '',
        /tables of another program/,
      ],
    ]
    for (const [prepare, parameters, message] of reasons) {
      await sql.unsafe(prepare)
      const schema = await readSchema(opened.url)
      for (let round = 0; round < 2; round += 1) await refuses(`${opened.url}${parameters}`, message)
      assert.deepEqual(await readSchema(opened.url), schema)
      await until(async () => (await opened.backends()).length === 0, 'every connection is closed')
    }
  })

  it('says of each host why it can not be reached', async () => {
    await using database = await postgres.newEmptyDatabase()
    await refuses(
      'postgres://me:secret@127.0.0.1:1,127.0.0.1:2/pets',
      /Cannot connect to PostgreSQL at 127\.0\.0\.1:1: .*ECONNREFUSED.*; 127\.0\.0\.1:2: /,
    )
    const wrong = database.url.replace(/:[^:@]*@/, ':secret@')
    await refuses(wrong, /password authentication failed/)
    assert.equal(await readyzSays(wrong), 'The database refuses the user or password of the service.')
    const missing = new URL(database.url)
    missing.pathname += '_none'
    assert.equal(await readyzSays(missing.href), 'The server has no database of this name.')
    assert.equal(await readyzSays('postgres://me:secret@127.0.0.1:1/pets'), 'The database does not answer.')
  })

  it('encrypts where it can or must, and asks who answers where it is told to', async () => {
    const server = await startPostgres('tls')
    await using folder = await mkdtempDisposable(join(tmpdir(), 'petstore-test-'))
    const root = join(folder.path, 'root.pem')
    // A bundle, as while certificates are replaced.
    await writeFile(root, `${rootCertificates[0]}\n${CERTIFICATE}`)
    const byName = server.url.replace('127.0.0.1', 'localhost')
    const encrypted: Record<string, boolean> = {
      [byName]: true,
      [`${byName}?sslmode=disable`]: false,
      [`${byName}?sslmode=require`]: true,
      [`${byName}?sslmode=verify-full&sslrootcert=${root}`]: true,
      [`${server.url}?sslmode=verify-ca&sslrootcert=${root}`]: true,
    }
    try {
      for (const [url, ssl] of Object.entries(encrypted))
        assert.deepEqual(await ask(url, (sql) => sql`SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()`), {
          ssl,
        })
      for (const mode of ['verify-ca', 'verify-full']) {
        await refuses(
          `${byName}?sslmode=${mode}`,
          /self-signed certificate(?!.*use-system-ca) \(sslrootcert of the address names the file/,
        )
        assert.equal(await readyzSays(`${byName}?sslmode=${mode}`), 'The certificate of the database is not trusted.')
      }
      assert.equal(
        await readyzSays(`${server.url}?sslmode=verify-full&sslrootcert=${root}`),
        'The certificate of the database has another name.',
      )
      await refuses(`${server.url}?sslmode=verify-full&sslrootcert=${root}`, /does not match certificate/)
      await refuses(
        `${byName}?sslmode=verify-full&sslrootcert=/none.pem`,
        /Cannot read sslrootcert .*, \/none\.pem: no such file/,
      )
    } finally {
      await server.end()
    }
  })

  /** Asserts that opening fails with this sslmode at a server that answers the request to encrypt like this. */
  async function refusesAt(host: string, mode: string, answer: (socket: Socket) => void): Promise<void> {
    await using server = createServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', () => answer(socket))
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    await refuses(`postgres://me:secret@${host}:${port}/pets?sslmode=${mode}`, /Cannot connect to PostgreSQL at /)
  }

  it('logs in to a server that does not encrypt only where it may', async () => {
    const loggedIn: string[] = []
    for (const mode of ['prefer', 'require', 'verify-ca', 'verify-full']) {
      await refusesAt('127.0.0.1', mode, (socket) => {
        socket.write('N')
        socket.once('data', (bytes) => {
          if (bytes.includes('user\0me\0')) loggedIn.push(mode)
          socket.destroy()
        })
      })
    }
    assert.deepEqual(loggedIn, ['prefer'])
  })

  it('tells a server that encrypts the host name (SNI), by which hosted databases find the customer', async () => {
    const asked: string[] = []
    const encrypting = createTlsServer(
      {
        key: KEY,
        cert: CERTIFICATE,
        SNICallback: (name, done) => {
          asked.push(name)
          done(null)
        },
      },
      (socket) => socket.destroy(),
    )
    await refusesAt('localhost', 'require', (socket) => {
      socket.write('S')
      encrypting.emit('connection', socket)
    })
    assert.deepEqual(asked, ['localhost'])
  })

  it('through a folder goes to the socket of its port there', async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'petstore-test-'))
    let connections = 0
    const server = createServer((socket) => {
      connections += 1
      socket.destroy()
    })
    await once(server.listen(join(folder.path, '.s.PGSQL.5433')), 'listening')
    await refuses(`postgres://me@/pets?host=${folder.path}:5433`, /Cannot connect to PostgreSQL at /)
    server.close()
    assert.ok(connections > 0)
  })
})

describe('a start on PostgreSQL', () => {
  it('waits while another instance migrates, for longer than any statement may take', async () => {
    await using database = await postgres.newEmptyDatabase()
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
      await sql`SELECT pg_sleep(1)`
      assert.equal((await sql`SELECT 1 FROM pg_tables WHERE tablename = 'pets'`).length, 0)
    })
    await (await started!).close()
    await sql.end()
  })

  it('makes no tables in an empty database for who only wants to read, and says so', async () => {
    await using database = await postgres.newEmptyDatabase()
    const { host, pathname } = new URL(database.url)
    await assert.rejects(
      open(database.url, { create: false }),
      (error) =>
        error instanceof NoDatabase &&
        error.message.startsWith(`There is no petstore database at PostgreSQL at ${host}${pathname}. `),
    )
    assert.deepEqual(await readSchema(database.url), {})
  })

  it('migrates the schema that is its own, whatever another schema of the database holds', async () => {
    await using database = await postgres.newEmptyDatabase()
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
    await using database = await postgres.newEmptyDatabase()
    const told = (parameters: string) =>
      ask(
        withParameters(database.url, `application_name=shop&statement_timeout=1234&${parameters}`),
        (sql) => sql`
        SELECT current_setting('application_name') AS name, current_setting('statement_timeout') AS statement,
          current_setting('idle_in_transaction_session_timeout') AS idle, EXISTS (SELECT 1 FROM pg_prepared_statements) AS prepared`,
      )
    assert.deepEqual(await told(''), { name: 'shop', statement: '1234ms', idle: '2468ms', prepared: true })
    assert.deepEqual(await told('pgbouncer=true'), { name: 'shop', statement: '0', idle: '0', prepared: false })
  })

  it('takes the user, password and database that an address leaves out from PGUSER, PGPASSWORD and PGDATABASE', async () => {
    await using database = await postgres.newEmptyDatabase()
    const { host, pathname } = new URL(database.url)
    const role = `left_out_${crypto.randomUUID().replaceAll('-', '')}`
    await askPostgres(database.url, `CREATE ROLE ${role} LOGIN PASSWORD 'left out'`)
    const left = { PGUSER: role, PGPASSWORD: 'left out', PGDATABASE: pathname.slice(1) }
    const earlier = { ...process.env }
    Object.assign(process.env, left)
    try {
      assert.deepEqual(
        await ask(`postgres://${host}`, (sql) => sql`SELECT current_user AS user, current_database() AS database`),
        { user: left.PGUSER, database: left.PGDATABASE },
      )
    } finally {
      for (const name of Object.keys(left)) delete process.env[name]
      Object.assign(process.env, earlier)
      await askPostgres(database.url, `DROP ROLE ${role}`)
    }
  })
})

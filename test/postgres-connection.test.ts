// Connections to PostgreSQL: what an address may say, and what a broken connection costs.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { createServer as createTlsServer } from 'node:tls'
import connectTo from 'postgres'
import { readConfig } from '../src/config.ts'
import { openStore } from '../src/store/open-store.ts'
import { parseConnection } from '../src/store/postgres/connection-settings.ts'
import { Pool } from '../src/store/postgres/pool.ts'
import { CannotOpenStore } from '../src/store/store.ts'
import { startCuttingProxy } from './cutting-proxy.ts'
import { postgres, withParameters } from '../assurance/harness/engines.ts'
import { countPets, startPetstore } from './harness.ts'
import { startPostgres } from '../assurance/harness/postgres-server.ts'
import { CERTIFICATE, KEY } from '../assurance/harness/test-certificate.ts'

const rex = { name: 'Rex', categoryId: 3 }

describe('a connection that breaks after the request and before the answer', { concurrency: false }, () => {
  it('costs a read nothing, doubles no create, and lets a create with a key end well', async () => {
    await using database = await postgres.newDatabase()
    await using proxy = await startCuttingProxy(database.url)
    await using petstore = await startPetstore({ database: `${proxy.url}?pool_size=1`, chores: false })
    const warmUp = async () => {
      await petstore.call('/pets')
      await petstore.add(rex)
      await petstore.add(rex, { 'Idempotency-Key': crypto.randomUUID() })
      return countPets(petstore)
    }
    await warmUp()
    proxy.cutNextAnswer()
    assert.equal((await petstore.call('/pets')).status, 200)

    const soFar = await warmUp()
    proxy.cutNextAnswer()
    const refused = await petstore.add(rex)
    assert.equal(refused.status, 503)
    assert.equal(await countPets(petstore), soFar + 1)

    const then = await warmUp()
    proxy.cutNextAnswer()
    const kept = await petstore.add(rex, { 'Idempotency-Key': 'kept' })
    assert.equal(kept.status, 201)
    assert.equal(await countPets(petstore), then + 1)
  })
})

describe('opening PostgreSQL', () => {
  const open = (url: string) => openStore(readConfig({ database: url }, {}).database)
  const refuses = (url: string, message: RegExp) =>
    assert.rejects(
      open(url),
      (error) => error instanceof CannotOpenStore && message.test(error.message) && !error.message.includes('secret'),
    )

  it('refuses a schema that is newer than the program, and changes nothing', async () => {
    await using database = await postgres.newDatabase()
    await (await open(database.url)).close()
    const sql = connectTo(database.url, { max: 1 })
    await sql`INSERT INTO petstore_migrations VALUES (99, 'from the future', 99, 0)`
    await sql.end()
    await refuses(database.url, /schema version 99, this program knows only up to/)
  })

  it("refuses a database with another program's tables", async () => {
    await using database = await postgres.newDatabase()
    const sql = connectTo(database.url, { max: 1 })
    await sql`CREATE TABLE pets (whatever INTEGER)`
    await refuses(database.url, /tables of another program/)
    assert.equal((await sql`SELECT 1 FROM pg_tables WHERE tablename = 'accounts'`).length, 0)
    await sql.end()
  })

  it('says what is wrong with an address', async () => {
    await using database = await postgres.newDatabase()
    await refuses(
      'postgres://me:secret@127.0.0.1:1/pets',
      /Cannot connect to PostgreSQL at 127\.0\.0\.1:1: .*ECONNREFUSED/,
    )
    await refuses('postgres://me:secret@127.0.0.1:1,127.0.0.1:2/pets', /127\.0\.0\.1:1: .*; 127\.0\.0\.1:2: /)
    await refuses(database.url.replace(/:[^:@]*@/, ':secret@'), /password authentication failed/)
    await refuses('postgres://me:se/secret@127.0.0.1/pets', /has a \/ or \? before its @/)
    await refuses('postgres://me:secret@[::1/pets', /no valid host/)
    await refuses('postgres://me:secret@h/pets?sslmode=maybe', /sslmode .* must be disable, prefer, /)
    await refuses('postgres://me:secret@h/pets?colour=red', /unknown parameter colour; known are host, sslmode/)
    await refuses('postgres://me:100%secret@h/pets', /write a % as %25/)
  })

  it('encrypts where it can or must, and asks who answers where it is told to', async () => {
    const server = await startPostgres('tls')
    await using folder = await mkdtempDisposable(join(tmpdir(), 'petstore-test-'))
    const root = join(folder.path, 'root.pem')
    await writeFile(root, CERTIFICATE)
    const byName = server.url.replace('127.0.0.1', 'localhost')
    const isEncrypted = async (url: string) => {
      const pool = new Pool(parseConnection(url))
      try {
        const [row] = await pool.read((sql) => sql`SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()`)
        return row!['ssl'] as boolean
      } finally {
        await pool.end()
      }
    }
    try {
      assert.equal(await isEncrypted(byName), true)
      assert.equal(await isEncrypted(`${byName}?sslmode=disable`), false)
      assert.equal(await isEncrypted(`${byName}?sslmode=require`), true)
      assert.equal(await isEncrypted(`${byName}?sslmode=verify-full&sslrootcert=${root}`), true)
      assert.equal(await isEncrypted(`${server.url}?sslmode=verify-ca&sslrootcert=${root}`), true)
      for (const mode of ['verify-ca', 'verify-full'])
        await refuses(`${byName}?sslmode=${mode}`, /self-signed certificate/)
      await refuses(`${server.url}?sslmode=verify-full&sslrootcert=${root}`, /does not match certificate/)
      await refuses(`${byName}?sslmode=verify-full&sslrootcert=/none.pem`, /Cannot read sslrootcert/)
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

  it('takes the first of several hosts that takes writes', async () => {
    await using database = await postgres.newDatabase()
    const store = await open(database.url.replace('@', '@127.0.0.1:1,'))
    await store.ping()
    await store.close()
  })

  it('passes over a host that only reads', async () => {
    await using database = await postgres.newDatabase()
    const sql = connectTo(database.url, { max: 1 })
    await (await open(database.url)).close()
    await sql.unsafe(`ALTER DATABASE ${sql.options.database} SET default_transaction_read_only = on`)
    await refuses(withParameters(database.url, 'target_session_attrs=read-write'), /it is read-only: a standby/)
    await sql.end()
  })
})

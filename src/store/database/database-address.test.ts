// Which texts are the address of a database, which of them hold a password, and how each is shown without it.
import assert from 'node:assert/strict'
import { resolve } from 'node:path'
import { describe, it } from 'node:test'
import { describeDatabase, holdsPassword, isInMemory, parseDatabase, suggestedAddress } from './database-address.ts'

const DATABASES = {
  'sqlite:pets.db': { engine: 'sqlite', path: resolve('pets.db') },
  'sqlite:/srv/pets.db': { engine: 'sqlite', path: '/srv/pets.db' },
  'sqlite:///srv/pets.db': { engine: 'sqlite', path: '/srv/pets.db' },
  'sqlite:me@shop.db': { engine: 'sqlite', path: resolve('me@shop.db') },
  'sqlite:/srv/12:30/me@shop/pets.db': { engine: 'sqlite', path: '/srv/12:30/me@shop/pets.db' },
  'sqlite::memory:': { engine: 'sqlite', path: ':memory:' },
  'sqlite:c:/pets@home.db': { engine: 'sqlite', path: resolve('c:/pets@home.db') },
  'postgres://h': { engine: 'postgres', url: 'postgres://h' },
  'postgresql://h/db': { engine: 'postgres', url: 'postgresql://h/db' },
}

const NO_DATABASES = [
  '',
  'pets.db',
  'sqlite:',
  'sqlite://pets.db',
  'mysqlite:pets.db',
  'sqlite:pets.db\n',
  'sqlite:me:secret@db',
  'sqlite:1:secret@db',
  'postgres:',
  'postgres://',
  'mysql://h/d',
  'postgres:db',
  'mypostgres://h/db',
]

describe('The address of a database', () => {
  it('is a path, in memory, or that of a PostgreSQL server, and nothing else', () => {
    for (const [address, database] of Object.entries(DATABASES)) assert.deepEqual(parseDatabase(address), database)
    for (const address of NO_DATABASES) assert.equal(parseDatabase(address), undefined, JSON.stringify(address))
  })

  it('is in memory by its name alone', () => {
    assert.ok(isInMemory(parseDatabase('sqlite::memory:')!))
    for (const address of ['sqlite:memory', 'sqlite:./:memory:', 'postgres://:memory:'])
      assert.ok(!isInMemory(parseDatabase(address)!), address)
  })

  it('holds a password only between the user and the host of a server', () => {
    for (const place of ['me:secret@h/db', ':secret@h', 'me:a/b?c@h', 'me:a\nb@h'])
      assert.ok(holdsPassword(`postgres://${place}`), place)
    for (const place of ['h', 'me@h:5432/db', 'me:@h', 'h/a:b@c', 'h?a=b:c@d'])
      assert.ok(!holdsPassword(`postgres://${place}`), place)
    for (const address of ['sqlite:/srv/me:secret@db', 'an address, postgres://me:secret@h'])
      assert.ok(!holdsPassword(address), address)
  })
})

describe('A database', () => {
  const descriptions = {
    'sqlite:/srv/pets.db': '/srv/pets.db',
    'postgres://db.example:5433/pets': 'PostgreSQL at db.example:5433/pets',
    'postgres://me:secret@db.example/pets?sslmode=require&password=secret': 'PostgreSQL at db.example/pets',
    'postgres://me:a@secret/@db.example/pets': 'PostgreSQL at db.example/pets',
    'postgres:///pets?host=/run/one': 'PostgreSQL at /run/one/pets',
    'postgres://me:secret@ignored/pets?sslmode=disable&host=%2Frun%2Ftwo': 'PostgreSQL at /run/two/pets',
    'postgresql://me:secret@one:1,two:2/pets': 'PostgreSQL at one:1,two:2/pets',
    'postgres://me@[::1]:5433,db-2.example': 'PostgreSQL at [::1]:5433,db-2.example',
    'postgres://me:secret?2secret@db': 'PostgreSQL at db',
    'postgres://h/pets?host=me:secret@db': 'PostgreSQL at db',
    'postgres://h/pets?host=me:secret%40db': 'PostgreSQL',
    'postgres://h/pets;password=secret': 'PostgreSQL',
    'postgres://h/pets%3Fpassword%3Dsecret': 'PostgreSQL',
    'sqlite:/srv/me:secret@db/pets.db': '/srv/…@db/pets.db',
    'postgres://me:secret': 'PostgreSQL',
    'postgres://me:secret/pets': 'PostgreSQL',
    'postgres://me:sec,ret': 'PostgreSQL',
  }
  const suggested: Record<string, string> = {
    'postgres://me:a@secret/@db.example/pets': 'postgres://me:PASSWORD@db.example/pets',
    'postgres://me:secret@ignored/pets?sslmode=disable&host=%2Frun%2Ftwo':
      'postgres://me:PASSWORD@ignored/pets?sslmode=disable&host=%2Frun%2Ftwo',
    'postgresql://me:secret@one:1,two:2/pets': 'postgresql://me:PASSWORD@one:1,two:2/pets',
    'postgres://me:secret?2secret@db': 'postgres://me:PASSWORD@db',
  }
  for (const [address, shown] of Object.entries(descriptions)) {
    it(`at ${address} is shown as ${shown}`, () => assert.equal(describeDatabase(parseDatabase(address)!), shown))
    it(`at ${address} is suggested without a password`, () =>
      assert.equal(suggestedAddress(address), suggested[address] ?? (/sec,?ret/.test(address) ? 'URL' : address)))
  }
})

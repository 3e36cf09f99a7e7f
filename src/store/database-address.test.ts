// Which texts are the address of a database, which of them hold a password, and how each is shown without it.
import assert from 'node:assert/strict'
import { resolve } from 'node:path'
import { describe, it } from 'node:test'
import { describeDatabase, holdsPassword, isInMemory, parseDatabase, suggestedAddress } from './database-address.ts'

const DATABASES = {
  'sqlite:pets.db': { engine: 'sqlite', path: resolve('pets.db') },
  'sqlite:/srv/pets.db': { engine: 'sqlite', path: '/srv/pets.db' },
  'sqlite:///srv/pets.db': { engine: 'sqlite', path: '/srv/pets.db' },
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
  'postgres://',
  'postgres:db',
  'mypostgres://h/db',
]

describe('The address of a database', () => {
  for (const [address, database] of Object.entries(DATABASES))
    it(`is ${address}`, () => assert.deepEqual(parseDatabase(address), database))

  for (const address of NO_DATABASES)
    it(`is not ${JSON.stringify(address)}`, () => assert.equal(parseDatabase(address), undefined))

  it('is in memory by its name alone', () => {
    assert.ok(isInMemory(parseDatabase('sqlite::memory:')!))
    for (const address of ['sqlite:memory', 'sqlite:./:memory:', 'postgres://:memory:'])
      assert.ok(!isInMemory(parseDatabase(address)!), address)
  })

  for (const address of [
    'postgres://me:secret@h/db',
    'postgresql://:secret@h',
    'postgres://me:a/b?c@h',
    'postgres://me:a\nb@h',
  ])
    it(`holds a password: ${JSON.stringify(address)}`, () => assert.ok(holdsPassword(address)))

  for (const address of [
    'postgres://h',
    'postgres://me@h:5432/db',
    'postgres://me:@h',
    'postgres://h/a:b@c',
    'postgres://h?a=b:c@d',
    'sqlite:/srv/me:secret@db',
    'an address, postgres://me:secret@h',
  ])
    it(`holds no password: ${address}`, () => assert.ok(!holdsPassword(address)))
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

// DATABASE_URL of PostgreSQL: what each part of an address means, and which values are refused.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { CannotOpenStore } from '../../store.ts'
import { type ConnectionSettings, parseConnection, hostAndPort } from './connection-settings.ts'

const DEFAULTS: ConnectionSettings = {
  hosts: [{ host: 'h', port: 5432 }],
  user: undefined,
  password: undefined,
  database: undefined,
  tls: 'prefer',
  needsWritable: false,
  poolSize: 10,
  connectTimeoutMs: 2000,
  statementTimeoutMs: 5000,
  pgbouncer: false,
  applicationName: 'petstore',
}

describe('an address of PostgreSQL', () => {
  const understood: Record<string, Partial<ConnectionSettings>> = {
    'postgres://h': {},
    'postgresql://h': {},
    'postgres://me@h/pets': { user: 'me', database: 'pets' },
    'postgres://me:secret@h': { user: 'me', password: 'secret' },
    'postgres://m%40e:a:b%2F%3F%25@h/p%20ets': { user: 'm@e', password: 'a:b/?%', database: 'p ets' },
    'postgres://me:a@b@h/pets': { user: 'me', password: 'a@b', database: 'pets' },
    'postgres://h:6000': { hosts: [{ host: 'h', port: 6000 }] },
    'postgres:///pets': { hosts: [{ host: 'localhost', port: 5432 }], database: 'pets' },
    'postgres://[::1]:6000': { hosts: [{ host: '::1', port: 6000 }] },
    'postgres://me@h:6000,[fe80::1],10.0.0.5/pets': {
      hosts: [
        { host: 'h', port: 6000 },
        { host: 'fe80::1', port: 5432 },
        { host: '10.0.0.5', port: 5432 },
      ],
      user: 'me',
      database: 'pets',
      needsWritable: true,
    },
    'postgres://h,h?target_session_attrs=any': {
      hosts: [
        { host: 'h', port: 5432 },
        { host: 'h', port: 5432 },
      ],
    },
    'postgres://h?target_session_attrs=read-write': { needsWritable: true },
    'postgres://h?target_session_attrs=primary': { needsWritable: true },
    'postgres://me@/pets?host=/var/run/postgresql': {
      hosts: [{ host: '/var/run/postgresql', port: 5432 }],
      user: 'me',
      database: 'pets',
    },
    'postgres://me@/pets?host=h,other:6000': {
      hosts: [
        { host: 'h', port: 5432 },
        { host: 'other', port: 6000 },
      ],
      user: 'me',
      database: 'pets',
      needsWritable: true,
    },
    'postgres://h?sslmode=disable': { tls: false },
    'postgres://h?sslmode=require': { tls: 'require' },
    'postgres://h?sslmode=verify-ca': { tls: { ca: undefined, name: false } },
    'postgres://h?sslmode=verify-full&sslrootcert=system': { tls: { ca: undefined, name: true } },
    'postgres://h?pool_size=1': { poolSize: 1 },
    'postgres://h?pool_size=25': { poolSize: 25 },
    'postgres://h?pool_size=1000': { poolSize: 1000 },
    'postgres://h?connect_timeout=1': { connectTimeoutMs: 1000 },
    'postgres://h?connect_timeout=60': { connectTimeoutMs: 60_000 },
    'postgres://h?statement_timeout=100': { statementTimeoutMs: 100 },
    'postgres://h?statement_timeout=120000': { statementTimeoutMs: 120_000 },
    'postgres://h?statement_timeout=600000': { statementTimeoutMs: 600_000 },
    'postgres://h?pgbouncer=true&application_name=two%20words': { pgbouncer: true, applicationName: 'two words' },
    'postgres://h?pgbouncer=false': {},
  }
  for (const [url, meaning] of Object.entries(understood)) {
    it(`is understood: ${url}`, () => assert.deepEqual(parseConnection(url), { ...DEFAULTS, ...meaning }))
  }

  const refused: Record<string, readonly string[]> = {
    pool_size: ['0', '1001', '-1', '01', '1.5', 'many', ''],
    connect_timeout: ['0', '61', '-1', '0.5', ''],
    statement_timeout: ['0', '99', '0500', '600001', '1e3', '5s', ''],
    pgbouncer: ['1', 'yes', 'TRUE', 'untrue', 'trueish', ''],
    target_session_attrs: ['standby', 'read-only', 'many', 'anything', ''],
    sslmode: ['allow', 'verify', 'do-not-require', 'required', ''],
    sslrootcert: [''],
    application_name: [''],
  }
  for (const [name, values] of Object.entries(refused)) {
    it(`is refused for a ${name} that it can't have, and says what it may be`, () => {
      for (const value of values) {
        assert.throws(
          () => parseConnection(`postgres://me:secret@h?${name}=${value}`),
          (error) =>
            error instanceof CannotOpenStore &&
            error.message.startsWith(`The parameter ${name} `) &&
            error.message.endsWith(`got "${value}".`),
        )
      }
    })
  }

  it('is shown to people as it is written: an IPv6 host in brackets', () => {
    assert.deepEqual(parseConnection('postgres://h,[::1]:6000').hosts.map(hostAndPort), ['h:5432', '[::1]:6000'])
  })

  it('is refused for a host that is none', () => {
    for (const hosts of ['h:port', 'h:123456', 'h,,h', '::1', '[::1'])
      assert.throws(() => parseConnection(`postgres://${hosts}/pets`), /has no valid host/)
  })

  it('is refused for a port that is none', () => {
    for (const hosts of ['h:0', 'h:65536', 'h:99999', 'a:5432,b:70000'])
      assert.throws(() => parseConnection(`postgres://${hosts}/pets`), /with ports from 1 to 65535/)
    for (const port of [1, 65_535]) assert.equal(parseConnection(`postgres://h:${port}/pets`).hosts[0]!.port, port)
  })

  it('is refused with what to write instead of a character of its password that must be escaped', () => {
    assert.throws(() => parseConnection('postgres://me:se/secret@127.0.0.1/pets'), /has a \/ or \? before its @/)
    assert.throws(() => parseConnection('postgres://me:100%secret@h/pets'), /write a % as %25/)
  })

  it('never has a part of its password in a message, however it is mistyped', () => {
    const mistyped = [
      'me:hunter?2secret@db',
      'me:hunter/2secret@db',
      'me:hunter2secret',
      'me:hunter2secret/pets',
      'me:hunter?2secret',
      'me:hunter?secret=1',
      'me@h?HUNTERsecret=1',
      'me@h?hunter2=secret',
      'me:hunter?secret@db?pool_size=1',
      'me:a@hunter?secret',
      'me:hunter%2secret@db',
      'me:hunter2secret?host=/run/postgresql',
      'hunter:2secret:5432',
      'db/pets?sslmode=require;password=hunter2secret',
      'db/pets?sslmode=verify-full&sslrootcert=/none;password=hunter2secret',
    ]
    for (const rest of mistyped) {
      assert.throws(
        () => parseConnection(`postgres://${rest}`),
        (error) => error instanceof CannotOpenStore && !/hunter|secret/.test(error.message),
        rest,
      )
    }
    const endless = 'postgres://db/pets?sslmode=verify-full&sslrootcert=/dev/zero'
    assert.throws(
      () => parseConnection(endless),
      /Cannot read sslrootcert of the database address, \/dev\/zero: it is .* not a regular file$/,
    )
    for (const name of ['poolsize', 'constructor'])
      assert.throws(
        () => parseConnection(`postgres://me:secret@db/pets?${name}=3`),
        new RegExp(`unknown parameter ${name}; known are host, sslmode`),
      )
  })
})

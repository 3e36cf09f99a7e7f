// Which values each setting accepts and refuses, and what a message about it says.
import assert from 'node:assert/strict'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { describe, it } from 'node:test'
import { petstore } from '../test/harness/programs/in-process-command.ts'
import type { Input } from './cli/command.ts'
import { serve } from './cli/commands/serve.ts'
import { BadSetting, type Config, ownBaseUrl, readConfig, type SettingName, SETTINGS } from './config.ts'

const from = (env: Record<string, string>) => readConfig({}, env)

describe('readConfig', () => {
  it('has a default for a first run at home', () => {
    // Those that are unset are left out of the JSON.
    assert.deepEqual(JSON.parse(JSON.stringify(from({}))), {
      host: '127.0.0.1',
      port: 8080,
      database: { engine: 'sqlite', path: resolve('data/petstore.db') },
      environment: 'staging',
      sessionMinutes: 120,
      storeName: 'Petstore',
      trustProxy: false,
      maxConnections: 1000,
      workers: 1,
      logLevel: 'notice',
      drainSeconds: 0,
      adminHost: '127.0.0.1',
      given: {},
      program: 'petstore',
    })
  })

  it('takes the first of flag, environment, .env and default, and treats an empty variable as unset', () => {
    const sources = [{ port: '1' }, { PORT: '2' }, { PORT: '3' }] as const
    const ports = [0, 1, 2, 3].map(
      (missing) =>
        readConfig(missing < 1 ? sources[0] : {}, missing < 2 ? sources[1] : {}, missing < 3 ? sources[2] : {}).port,
    )
    assert.deepEqual(ports, [1, 2, 3, 8080])
    assert.equal(readConfig({}, { PORT: '' }, { PORT: '3' }).port, 3)
    assert.equal(from({ PORT: '' }).port, 8080)
    assert.throws(() => readConfig({ port: '' }, {}), BadSetting)
  })

  it('names the setting, the value and what is allowed', () => {
    const got = '{}"\\'
    for (const { variable, flag, allowed } of Object.values(SETTINGS)) {
      const message = (source: string) => `${source} must be ${allowed}, got ${JSON.stringify(got)}.`
      assert.throws(() => from({ [variable]: got }), { name: 'BadSetting', message: message(variable) })
      assert.throws(() => readConfig({ [flag]: got }, {}), { name: 'BadSetting', message: message(`--${flag}`) })
    }
  })

  const BASE_URL = 'https://pets.example/v1'
  /** Which texts name a database is decided, and tested, in store/database/database-address.ts. */
  const accepted: Record<SettingName, Record<string, unknown>> = {
    port: { 0: 0, 65_535: 65_535, '00080': 80 },
    database: { 'sqlite:/srv/pets.db': { engine: 'sqlite', path: '/srv/pets.db' } },
    baseUrl: { [BASE_URL]: BASE_URL, 'http://localhost:80/a/v1': 'http://localhost/a/v1' },
    trustProxy: {
      '10.0.0.0/8, ::1': ['10.0.0.0/8', '::1'],
      'loopback,linklocal,uniquelocal': ['loopback', 'linklocal', 'uniquelocal'],
      '10.0.0.1/32,fd00::1/128': ['10.0.0.1/32', 'fd00::1/128'],
    },
    sessionMinutes: { 5: 5, 720: 720 },
    drainSeconds: { 0: 0, 600: 600 },
    maxConnections: { 1: 1, 65535: 65_535 },
    workers: { 1: 1, 64: 64, auto: Math.min(availableParallelism(), 64) },
    rateLimit: {
      '600/60': { requests: 600, seconds: 60 },
      '1/1': { requests: 1, seconds: 1 },
      '999999999/999999': { requests: 999_999_999, seconds: 999_999 },
    },
    host: { '0.0.0.0': '0.0.0.0', '::1': '::1', 'pets-1.example': 'pets-1.example' },
    adminHost: { '::': '::' },
    adminPort: { 0: 0, 65_535: 65_535 },
    environment: { production: 'production', staging: 'staging' },
    stagingBaseUrl: { [BASE_URL]: BASE_URL },
    storeName: { 'Paws & Claws': 'Paws & Claws', ' ハムハム ': 'ハムハム', ['🐾'.repeat(40)]: '🐾'.repeat(40) },
    signup: { open: 'open', closed: 'closed' },
    logLevel: { error: 'error', debug: 'debug' },
  }
  for (const [name, values] of Object.entries(accepted) as [SettingName, Record<string, unknown>][]) {
    const { variable } = SETTINGS[name]
    it(`accepts as ${variable}: ${Object.keys(values).join(' ')}`, () => {
      for (const [value, expected] of Object.entries(values))
        assert.deepEqual(from({ [variable]: value })[name], expected, value)
    })
  }

  it('accepts the whole range that a setting says it allows, and nothing beyond', () => {
    const ranges = Object.values(SETTINGS).flatMap(({ variable, allowed }) =>
      Array.from(allowed.matchAll(/ from (\d+) to (\d+)/g), ([, min, max]) => ({
        variable,
        ends: [min, max].map(Number),
      })),
    )
    assert.ok(ranges.length > 4)
    for (const {
      variable,
      ends: [min, max],
    } of ranges) {
      for (const value of [min!, max!]) from({ [variable]: `${value}` })
      for (const value of [min! - 1, max! + 1]) assert.throws(() => from({ [variable]: `${value}` }), BadSetting)
    }
  })

  const bases = ['', '/v1/', '/apiv1', '/v1?x', '/v1#x'].map((end) => `https://pets.example${end}`)
  const users = ['u:p', 'u', ':p'].map((user) => `https://${user}@pets.example/v1`)
  const refused: Partial<Record<SettingName, string[]>> = {
    port: ['-1', '65536', '80.5', '8e1', 'http', ' 80'],
    host: ['http://x', 'a b', '/tmp/socket'],
    database: ['pets.db', 'sqlite:'],
    environment: ['Production', 'test'],
    baseUrl: [...bases, ...users, 'ftp://pets.example/v1', '/v1'],
    storeName: [' ', 'x'.repeat(41), 'Paws\nClaws'],
    signup: ['yes', 'OPEN'],
    trustProxy: 'true 999.1.1.1 10.0.0.0/33 10.0.0.0/0 fd00::/129 10.0.0.0/8/8 10.0.0.1, proxy.example'.split(' '),
    rateLimit: ['0/60', '60', '1/0', '1.5/60', '-1/60', '1/60s', '1000000000/1', '1/1000000'],
    logLevel: ['verbose', 'INFO'],
    sessionMinutes: ['4', '721', '2h'],
    drainSeconds: ['-1', '601', '1.5', '5s'],
    maxConnections: ['0', '65536', '-1', '1e3', 'many'],
    workers: ['0', '65', '1.5', 'Auto'],
  }
  for (const [name, values] of Object.entries(refused) as [SettingName, string[]][]) {
    const { variable } = SETTINGS[name]
    it(`refuses as ${variable}: ${values.join(' ')}`, () => {
      for (const value of values) assert.throws(() => from({ [variable]: value }), BadSetting, value)
    })
  }

  it('takes the database address from a file, so that no process list or environment shows its password', async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'petstore-test-'))
    const file = join(folder.path, 'address')
    // As an editor of another system may leave it.
    await writeFile(file, 'postgres://me:secret@db/pets \r\n')
    const { database, given } = from({ DATABASE_URL_FILE: file })
    assert.deepEqual(database, { engine: 'postgres', url: 'postgres://me:secret@db/pets' })
    assert.ok(given.has('database'))
    const other = { engine: 'sqlite', path: '/x' }
    const { database: unset } = from({ DATABASE_URL_FILE: '', DATABASE_URL: 'sqlite:/x' })
    assert.deepEqual(unset, other, 'an empty variable counts as unset')
    const both = { DATABASE_URL_FILE: file, DATABASE_URL: 'sqlite:x' }
    for (const env of [{ DATABASE_URL_FILE: file }, both])
      assert.deepEqual(readConfig({ database: 'sqlite:/x' }, env).database, other)
    const inFile = { DATABASE_URL_FILE: file }
    assert.deepEqual(readConfig({}, { DATABASE_URL: 'sqlite:/x' }, inFile).database, other, 'the environment wins')
    assert.deepEqual(readConfig({}, inFile, { DATABASE_URL: 'sqlite:/x' }).database, database, 'in either form')
    assert.throws(() => from(both), /^BadSetting: Set DATABASE_URL or DATABASE_URL_FILE, not both\.$/)
    assert.throws(
      () => from({ DATABASE_URL_FILE: `${file}.not` }),
      /^BadSetting: DATABASE_URL_FILE must name a file that can be read, got .*: no such file or directory\./,
    )
    assert.throws(() => from({ DATABASE_URL_FILE: '/dev/zero' }), /^BadSetting: .* not a regular file\.$/)
    // With the byte order mark that some editors write.
    await writeFile(file, '\uFEFF\n postgres://me:secret@db/pets\n')
    assert.deepEqual(from({ DATABASE_URL_FILE: file }).database, database)
    await writeFile(file, 'me:secret')
    assert.throws(
      () => from({ DATABASE_URL_FILE: file }),
      ({ message }: Error) =>
        message.startsWith('The content of DATABASE_URL_FILE must be sqlite:PATH') && !message.includes('secret'),
    )
  })

  it('never repeats a password of a database address', () => {
    for (const value of [
      'sqlite://u:secret@h/d',
      'sqlite:u:secret@h/d',
      'sqlite:/u:secret@h/d',
      'sqlite:///u:secret@h/d',
      'sqlite:u%3Asecret%40h',
      'host=h password=secret',
      'postgres%3A%2F%2Fu%3Asecret%40h',
      'mysql://u:secret@h/d',
      'postgre://u:se@secret@h/d',
      'pg:u:secret@h',
      'x://u:a/secret@h',
      'u:secret',
      'u:secret@h',
      'mysql://u:p@secret',
      '//u:secret@h',
      'u@secret',
      ':secret',
    ]) {
      assert.throws(
        () => from({ DATABASE_URL: value }),
        ({ message }: Error) => message.includes('…"') && !message.includes('secret'),
        value,
      )
    }
  })
})

describe('A setting with an address in the wrong place', () => {
  it('never has its password in the message, whether flag or variable', () => {
    for (const { variable, flag } of Object.values(SETTINGS)) {
      for (const value of [
        'sqlite://u:secret@h',
        'https://u:se cret secret@h/v2',
        'https://h/v2?password=secret',
        'u:secret@h',
      ]) {
        const isRedacted = (error: unknown) =>
          error instanceof BadSetting && error.message.includes('…') && !error.message.includes('secret')
        assert.throws(() => from({ [variable]: value }), isRedacted, `${variable}=${value}`)
        assert.throws(() => readConfig({ [flag]: value }, {}), isRedacted, `--${flag} ${value}`)
      }
    }
    for (const value of ['postgres://u:secret@h/d', 'postgres://u:secret s@h/d']) {
      assert.throws(
        () => from({ DATABASE_URL_FILE: value }),
        ({ message }: Error) => message.startsWith('DATABASE_URL_FILE must name a file') && !message.includes('secret'),
      )
    }
  })
})

describe('What follows from the settings', () => {
  it('it is known which settings were given, by a flag or a variable that is not empty', () => {
    const { given } = readConfig({ port: '8080' }, { PETSTORE_ENVIRONMENT: 'staging', HOST: '' })
    assert.deepEqual([...given.keys()], ['port', 'environment'])
  })

  it('the own base address is the one of the environment, and never the other', () => {
    const [production, staging] = ['https://pets.example/v1', 'https://staging.example/v1']
    const own = (environment: string, env: Record<string, string>) =>
      ownBaseUrl(from({ PETSTORE_ENVIRONMENT: environment, ...env }))
    const both = { PETSTORE_BASE_URL: production, PETSTORE_STAGING_BASE_URL: staging }
    assert.deepEqual([own('production', both), own('staging', both)], [production, staging])
    assert.equal(own('production', { PETSTORE_STAGING_BASE_URL: staging }), undefined)
    assert.equal(own('staging', { PETSTORE_BASE_URL: production }), undefined)
  })
})

it('Every setting is read by the time the service has started', async ({ mock }) => {
  const left = new Set<string | symbol>(Object.keys(SETTINGS))
  // By the pages, when they are shown.
  left.delete('storeName')
  const get = (config: Config, name: keyof Config) => (left.delete(name), config[name])
  // A copy would read them all.
  const ownKeys = () => assert.fail('pass the settings on as they are')
  const start = serve.run.bind(serve)
  mock.method(serve, 'run', (input: Input) => start({ ...input, config: new Proxy(input.config, { get, ownKeys }) }))
  const words = ['serve', '--port', '0', '--admin-port', '0', '--database', 'sqlite::memory:']
  await petstore(words, { stopSignal: () => Promise.resolve('SIGTERM') })
  assert.deepEqual([...left], [])
})

// How much of a secret is left in a text that is logged, stored or quoted.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { generateKey } from '../../accounts/api-keys.ts'
import { newToken } from '../../accounts/sessions.ts'
import { quote } from '../json.ts'
import { redactAddress, redactCredentials, redactSecrets, redactValue } from './redact.ts'

const [key, live, token] = [generateKey('staging'), generateKey('production'), newToken()]

/** Percent-encodes every character, `times` times. */
function encoded(text: string, times: number): string {
  return times === 0
    ? text
    : encoded(
        text.replaceAll(/[^]/g, (character) => `%${character.charCodeAt(0).toString(16)}`),
        times - 1,
      )
}

describe('A secret in a text', () => {
  it('is cut short wherever it stands', () => {
    assert.equal(redactSecrets(`/v1/pets/${key}/x?${key}&${live}`), '/v1/pets/pets_test_…/x?pets_test_…&pets_live_…')
    assert.equal(redactSecrets(`petstore=${token}; a=${token}`), 'petstore=…; a=…')
  })

  it('is recognised however it was percent-encoded', () => {
    for (const [secret, left] of [
      [key, 'pets_test_…'],
      [token, '…'],
    ] as const) {
      for (const times of [0, 1, 2, 3, 4])
        assert.equal(redactSecrets(`/${encoded(secret, times)}/`), `/${left}/`, String(times))
    }
    for (const underscore of ['%5f', '%255F', `%${'25'.repeat(50)}5f`])
      assert.equal(redactSecrets(key.replaceAll('_', underscore)), 'pets_test_…', underscore)
  })

  it('is recognised without its prefix, and with one that was written in another way', () => {
    const body = key.slice(-36)
    assert.equal(redactSecrets(body), '…')
    for (const prefix of ['pets_test_ ', String.raw`pets\test_`, '%u0070ets_test_', 'pets-test-', 'petsştest_']) {
      assert.ok(!redactSecrets(prefix + body).includes(body.slice(-20)), prefix)
    }
  })

  it('leaves no part of itself in a quotation that is cut', () => {
    fc.assert(
      fc.property(
        fc.string({ maxLength: 80, size: 'max' }),
        fc.string(),
        fc.constantFrom(key, token),
        (before, after, secret) => {
          const quoted = quote(`${before} ${secret} ${after}`)
          assert.ok(!quoted.includes(secret.slice(-20)) && !quoted.includes(secret.slice(10, 20)))
        },
      ),
    )
  })

  it('is all that changes: other texts stay as they are', () => {
    for (const text of [
      '/v1/pets/42',
      '/v1/pets/%zz%',
      '7d1f5c2e-3a54-4f0e-9f0b-5c1f3f3d8a10',
      'a'.repeat(35),
      'a'.repeat(37),
      'a'.repeat(42),
      'a'.repeat(44),
      'pets_test',
      'pets_dev_x',
      '100% sure_of_it',
    ]) {
      assert.equal(redactSecrets(text), text)
    }
  })
})

/** Ways to write an address with the secret in it, right and wrong. */
const ADDRESSES: ((secret: string) => string)[] = [
  ...['sqlite', 'postgres', 'postgresql', 'postgre', 'mysql', 'https', 'jdbc:postgresql', 'redis+tls'].map(
    (scheme) => (secret: string) => `${scheme}://me:${secret}@db.example:5432/pets`,
  ),
  (secret) => `sqlite:me:${secret}@db/pets`,
  (secret) => `sqlite:/me:${secret}@db/pets`,
  (secret) => `sqlite:///me:${secret}@db/pets`,
  (secret) => `//me:${secret}@db/pets`,
  (secret) => `me:${secret}@db/pets`,
  (secret) => `://me:${secret}@db`,
  (secret) => `:${secret}@db`,
  (secret) => `postgres://${secret}@db`,
  (secret) => `postgres://:${secret}@db`,
  (secret) => `postgres://me:a@${secret}@db@x/pets`,
  (secret) => `postgres://me:a/${secret}@db/pets`,
  (secret) => `postgres://me:a?${secret}@db/pets`,
  (secret) => `postgres://me:a:${secret}@db/pets`,
  (secret) => `postgres:/me:${secret}@db/pets`,
  (secret) => `postgres:me:${secret}@db/pets`,
  (secret) => `postgres://me:${secret}/pets`,
  (secret) => `"postgres://me:${secret}@db/pets"`,
  (secret) => `postgres://db/pets?password=${secret}&sslpassword=${secret}`,
  (secret) => `sqlite:pets.db?PASSWORD=${secret}`,
  (secret) => `host=db;pwd=${secret};user=me`,
  ...['passwd', 'passphrase', 'secret', 'client_secret', 'token', 'access_token'].map(
    (name) => (secret: string) => `postgres://db/pets?user=me&${name}=${secret}`,
  ),
  (secret) => `postgres://me:a%0a${secret}@db/pets`,
  (secret) => `postgres://db/pets?password=a%20${secret}`,
  (secret) => `postgres%3A%2F%2Fme%3A${secret}%40db%2Fpets`,
  (secret) => `postgres%253A%252F%252Fme%253A${secret}%2540db%252Fpets`,
  (secret) => `postgres://me%3A${secret}%40db/pets`,
]

describe('The password of an address', () => {
  const characters = [...'abcXYZ019!$&\'()*+,-._~^|\\<>{}`"%']
  const secrets = fc
    .array(fc.constantFrom(...characters), { minLength: 0, maxLength: 12 })
    .map((middle) => `hunter${middle.join('').replaceAll('&', '+')}x`)

  it('is in no text, however the address is written', () => {
    fc.assert(
      fc.property(fc.constantFrom(...ADDRESSES), secrets, (write, secret) => {
        assert.ok(!redactCredentials(`Cannot read ${write(secret)}: no such file`).includes('hunter'))
      }),
      { numRuns: 500 },
    )
  })

  it('is not repeated with a value that may be an address, also one with spaces in it', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...ADDRESSES),
        secrets,
        fc.constantFrom('', ' ', '\n', '\t '),
        (write, secret, space) => {
          for (const redact of [redactAddress, redactValue])
            assert.ok(!redact(write(`a${space}${secret}${space}${secret}`)).includes('hunter'))
        },
      ),
      { numRuns: 500 },
    )
  })

  it('may be any part of a broken address, of which the scheme is left', () => {
    const left = {
      'sqlite://me:secret@db': 'sqlite:…',
      'mysql://u:p@secret': 'mysql:…',
      'postgres:me:secret@db': 'postgres:…',
      'POSTGRESQL:me:secret@db': 'POSTGRESQL:…',
      'redis:secret@db': '…',
      'u@secret': '…',
      'u:secret': '…',
      ':secret': '…',
      'host=db password=secret': '…',
      'pets?secret': '…',
    }
    for (const [address, expected] of Object.entries(left)) assert.equal(redactAddress(address), expected)
  })

  it('is all that changes: other texts stay as they are', () => {
    const plain = [
      'pets.db',
      'sqlite:',
      'postgres://',
      'sqlite://pets.db',
      'mysql://db.example:3306/pets',
      'https://pets.example/v1/',
      'http://[::1]:8080/v1',
      '/v1',
      '{}"\\',
    ]
    for (const text of plain)
      for (const redact of [redactAddress, redactValue, redactCredentials]) assert.equal(redact(text), text)
    const values = [
      'me@example.com',
      'fd00::/129',
      '10.0.0.0/33',
      '127.0.0.1:8080',
      '600/60',
      '12:30:00',
      '100%',
      'C:\\pets.db',
    ]
    for (const text of values) for (const redact of [redactValue, redactCredentials]) assert.equal(redact(text), text)
    assert.equal(redactCredentials('got "me:s3cret@pets.csv.example/petstore".'), 'got "…@pets.csv.example/petstore".')
    for (const text of [
      'petstore key list --database sqlite:/tmp/me@corp/pets.db',
      'must be sqlite:PATH or postgres://USER:PASSWORD@HOST/NAME, got',
      'There is no account for me@example.com: see petstore account list',
      'Cannot connect to http://127.0.0.1:8080.',
    ]) {
      assert.equal(redactCredentials(text), text)
    }
  })
})

// What is left of a secret in a text that is logged, stored or repeated.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { generateKey } from '../accounts/api-keys.ts'
import { newToken } from '../accounts/sessions.ts'
import { quote } from './json.ts'
import { redactSecrets } from './redact.ts'

const [key, live, token] = [generateKey('staging'), generateKey('production'), newToken()]

/** Encodes every character, as often as asked. */
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
      for (const times of [0, 1, 2, 3])
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

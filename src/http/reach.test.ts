// Where sign-up is open although nobody has set it: only where nobody but this machine can reach it.
import assert from 'node:assert/strict'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import { readConfig } from '../config.ts'
import { isOwnName, reachOf } from './reach.ts'

const bound = (address: string): AddressInfo => ({
  address,
  family: address.includes(':') ? 'IPv6' : 'IPv4',
  port: 8080,
})
const reach = (env: Record<string, string>, address: AddressInfo | string | null = bound('127.0.0.1')) =>
  reachOf(readConfig({}, env), address)

describe('A service at home', () => {
  for (const address of ['127.0.0.1', '127.1.2.3', '::1', '::ffff:127.0.0.1']) {
    it(`listens on a loopback address, such as ${address}`, () =>
      assert.deepEqual(reach({}, bound(address)), { atHome: true, signup: 'open' }))
  }

  const open = ['0.0.0.0', '::', '192.0.2.1', '::ffff:192.0.2.1'].map(bound)
  for (const address of [...open, '/run/petstore.sock', null]) {
    it(`does not listen on ${typeof address === 'object' ? (address?.address ?? 'nothing') : address}`, () =>
      assert.deepEqual(reach({}, address), { atHome: false, signup: 'closed' }))
  }

  it('is judged by the address that is bound, not by the setting', () => {
    assert.equal(reach({ HOST: 'localhost' }, bound('192.0.2.1')).signup, 'closed')
    assert.equal(reach({ HOST: '0.0.0.0' }, bound('127.0.0.1')).signup, 'open')
  })

  const elsewhere: Record<string, string>[] = [
    { PETSTORE_BASE_URL: 'https://pets.example/v1' },
    { PETSTORE_STAGING_BASE_URL: 'https://staging.example/v1' },
    { PETSTORE_TRUST_PROXY: 'loopback' },
  ]
  for (const env of elsewhere) {
    it(`has no ${Object.keys(env).join()}: a proxy on the same machine reaches a loopback address too`, () =>
      assert.deepEqual(reach(env), { atHome: false, signup: 'closed' }))
  }

  it('has no sign-up in production', () =>
    assert.deepEqual(reach({ PETSTORE_ENVIRONMENT: 'production' }), { atHome: true, signup: 'closed' }))

  it('is not asked where sign-up is set', () => {
    assert.equal(reach({ PETSTORE_SIGNUP: 'closed' }).signup, 'closed')
    assert.equal(
      reach({ PETSTORE_SIGNUP: 'open', PETSTORE_ENVIRONMENT: 'production' }, bound('0.0.0.0')).signup,
      'open',
    )
  })
})

describe('isOwnName', () => {
  const addresses = ['127.0.0.1', '127.0.0.1:8080', '192.0.2.1:80', '[::1]', '[::1]:8080']
  const names = ['localhost', 'LOCALHOST:1', 'pets.localhost:8080', 'a.b-c.localhost', 'localhost.']
  for (const host of [...addresses, ...names]) it(`accepts ${host}`, () => assert.ok(isOwnName(host)))

  const foreign = ['', 'pets.example', 'pets.example:8080', '127.0.0.1@pets.example', '[pets.example]']
  const alike = ['localhost.example', 'mylocalhost', '127.0.0.1.example', '.localhost', 'a..localhost', '::1x']
  const ports = ['localhost:80:80', 'localhost:evil', 'evil:localhost', 'pets.example:127.0.0.1', '[::1]x', 'x[::1]']
  for (const host of [...foreign, ...alike, ...ports])
    it(`refuses ${JSON.stringify(host)}`, () => assert.ok(!isOwnName(host)))
})

// Which inherited socket the service takes, the address that it reports, and servers that never listened.
import assert from 'node:assert/strict'
import type { Server } from 'node:http'
import { describe, it } from 'node:test'
import { addressOf, cutOff } from './listening.ts'
import { createServer } from './node-http.ts'

describe('addressOf', () => {
  it('has brackets around an IPv6 address', () => {
    const at = (address: string, family: string) =>
      addressOf({ address: () => ({ address, family, port: 8080 }) } as unknown as Server)
    assert.equal(at('::1', 'IPv6'), 'http://[::1]:8080')
    assert.equal(at('127.0.0.1', 'IPv4'), 'http://127.0.0.1:8080')
  })
})

describe('cutOff', () => {
  it('closes a server that never listened, and one that never was', async () => {
    await cutOff(createServer())
    await cutOff(undefined)
  })
})

// Which inherited socket the service takes, the address that it reports, and servers that never listened.
import assert from 'node:assert/strict'
import type { Server } from 'node:http'
import { describe, it } from 'node:test'
import { addressOf, CannotListen, cutOff, inheritedSocket } from './listening.ts'
import { createServer } from './node-http.ts'

describe('inheritedSocket', () => {
  it('is the third file descriptor if one socket was passed to this process, else none', () => {
    assert.deepEqual(inheritedSocket({ LISTEN_PID: '7', LISTEN_FDS: '1' }, 7), { fd: 3 })
    const none = [{}, { LISTEN_PID: '7' }, { LISTEN_PID: '7', LISTEN_FDS: '0' }, { LISTEN_PID: '8', LISTEN_FDS: '2' }]
    for (const env of none) assert.equal(inheritedSocket(env, 7), undefined, JSON.stringify(env))
    assert.throws(() => inheritedSocket({ LISTEN_PID: '7', LISTEN_FDS: '2' }, 7), CannotListen)
  })
})

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

// Which inherited socket the service takes, the address that it reports, and the last steps of a shutdown.
import assert from 'node:assert/strict'
import type { Server } from 'node:http'
import { Writable } from 'node:stream'
import { describe, it } from 'node:test'
import { createLog } from '../log.ts'
import { addressOf, CannotListen, cutOff, inheritedSocket, lastStep } from './listening.ts'
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

describe('A shutdown', () => {
  it('closes a server that never listened, and one that never was', async () => {
    await cutOff(createServer())
    await cutOff(undefined)
  })

  it('logs a last step that fails, and returns its error', async () => {
    const lines: { msg: string; error: { message: string } }[] = []
    const destination = new Writable({
      write(line: Buffer, _encoding, done) {
        lines.push(JSON.parse(line.toString()) as (typeof lines)[number])
        done()
      },
    })
    const log = createLog('info', destination)
    assert.equal(await lastStep(Promise.resolve('done'), 'it could not be done', log), undefined)
    assert.equal(lines.length, 0)
    const error = new Error('disk full')
    assert.equal(await lastStep(Promise.reject(error), 'it could not be done', log), error)
    assert.deepEqual([lines[0]?.msg, lines[0]?.error.message], ['it could not be done', 'disk full'])
  })
})

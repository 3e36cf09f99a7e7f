// Which clients take gzip.
import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { describe, it } from 'node:test'
import { takesGzip } from './call.ts'

describe('takesGzip', () => {
  const cases: Record<string, boolean> = {
    gzip: true,
    'GZIP ; Q=1': true,
    'x-gzip': true,
    'br, gzip': true,
    'br;q=1.0, gzip;q=0.8, *;q=0.1': true,
    'gzip;q=0.001': true,
    '*': true,
    'identity;q=0, *': true,
    'gzip, identity': true,
    'gzip;q=0.5, identity;q=0.5': true,
    '': false,
    identity: false,
    br: false,
    gzipped: false,
    'gzip;q=0': false,
    'gzip; q=0.000': false,
    'gzip;q=0, *': false,
    '*;q=0': false,
    'identity;q=0': false,
    'gzip;q=0.5, identity': false,
    'gzip;q=many': false,
  }
  for (const [accepted, takes] of Object.entries(cases)) {
    it(`is ${takes} for ${accepted || 'an empty header'}`, () => assert.equal(asked(accepted), takes))
  }

  it('is false without the header', () => assert.equal(asked(undefined), false))
})

function asked(accepted: string | undefined): boolean {
  const raw = { headers: accepted === undefined ? {} : { 'accept-encoding': accepted } } as IncomingMessage
  return takesGzip({ id: '', ip: '', startedAt: 0, raw })
}

// Which clients take gzip.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Call } from '../../http/call/call.ts'
import { acceptsGzip } from './assets.ts'

const asked = (headers: object) => acceptsGzip({ request: { headers } } as Call)

describe('Whether a client takes gzip', () => {
  const cases: Record<string, boolean> = {
    gzip: true,
    'GZIP ; Q=1': true,
    'x-gzip': true,
    'br, gzip': true,
    'br;q=1.0, gzip;q=0.8, *;q=0.1': true,
    'gzip;q=0.001': true,
    'gzip, identity': true,
    '': false,
    identity: false,
    br: false,
    gzipped: false,
    'gzip;q=0': false,
    'gzip; q=0.000': false,
    'br, gzip ; Q=0., *': false,
  }
  for (const [accepted, takes] of Object.entries(cases)) {
    it(`is ${takes} for ${accepted || 'an empty header, or none'}`, () => {
      assert.equal(asked({ 'accept-encoding': accepted }), takes)
      if (!accepted) assert.equal(asked({}), takes)
    })
  }
})

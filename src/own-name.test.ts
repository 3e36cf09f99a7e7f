// Which names of the host another site can't make its own.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isOwnName } from './own-name.ts'

describe('isOwnName', () => {
  for (const host of [
    '127.0.0.1',
    '127.0.0.1:8080',
    '192.0.2.1:80',
    '[::1]',
    '[::1]:8080',
    'localhost',
    'LOCALHOST:1',
    'pets.localhost:8080',
    'a.b-c.localhost',
    'localhost.',
  ]) {
    it(`accepts ${host}`, () => assert.ok(isOwnName(host)))
  }

  for (const host of [
    '',
    'pets.example',
    'pets.example:8080',
    'localhost.example',
    'mylocalhost',
    '127.0.0.1.example',
    '127.0.0.1@pets.example',
    '[pets.example]',
    '::1x',
    'localhost:80:80',
    '.localhost',
    'a..localhost',
    'localhost:evil',
  ]) {
    it(`refuses ${JSON.stringify(host)}`, () => assert.ok(!isOwnName(host)))
  }
})

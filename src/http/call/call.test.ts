// Which clients prefer HTML, and the origin that a request was sent to.
import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { describe, it } from 'node:test'
import { createOrigin } from './client-address.ts'
import { prefersHtml } from './routes.ts'

const requestWith = (headers: object, remoteAddress?: string) =>
  ({ headers, socket: { remoteAddress } }) as unknown as IncomingMessage

describe('Whether a client prefers HTML', () => {
  const cases: Record<string, boolean> = {
    'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8': true,
    'text/html': true,
    'TEXT/HTML; charset=utf-8': true,
    'text/html, application/json': true,
    '*/*': false,
    '': false,
    'application/json': false,
    'application/json, text/plain, */*': false,
    'application/json, text/html;q=0.9': false,
    'text/htmlish': false,
  }
  for (const [accept, prefers] of Object.entries(cases)) {
    it(`is ${prefers} for ${accept || 'an empty header, or none'}`, () => {
      assert.equal(prefersHtml(requestWith({ accept })), prefers)
      if (!accept) assert.equal(prefersHtml(requestWith({})), prefers)
    })
  }
})

describe('The origin of a request', () => {
  const originOf = createOrigin(['127.0.0.1'])
  const origin = (headers: Record<string, string>, remoteAddress = '127.0.0.1') => {
    const { protocol, host } = originOf(requestWith({ host: 'pets.example', ...headers }, remoteAddress))
    return `${protocol}://${host}`
  }

  it('is what the nearest trusted proxy says, of each part that it says anything of', () => {
    const forwarded = { 'x-forwarded-proto': 'http, https', 'x-forwarded-host': 'a.example ,b.example ' }
    assert.equal(origin(forwarded), 'https://b.example')
    assert.equal(origin({ 'x-forwarded-proto': 'https' }), 'https://pets.example')
    assert.equal(origin({ 'x-forwarded-host': 'a.example' }), 'http://a.example')
    assert.equal(origin({ 'x-forwarded-proto': '', 'x-forwarded-host': ' ' }), 'http://pets.example')
    assert.equal(origin(forwarded, '192.0.2.1'), 'http://pets.example')
  })
})

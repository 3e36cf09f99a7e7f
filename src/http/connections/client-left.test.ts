// Work for an answer learns that its client leaves, also if that was before it began.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { it } from 'node:test'
import { ClientLeft, unlessLeft, whenLeft } from './client-left.ts'

it('Work learns that its client leaves, and that it had left before, and is waited for no longer', async () => {
  const response = new ServerResponse(new IncomingMessage(new Socket()))
  const during = whenLeft(response)
  assert.equal(during.aborted, false)
  const waiting = assert.rejects(unlessLeft(new Promise(() => {}), during), ClientLeft)
  response.destroy()
  await once(response, 'close')
  await waiting
  const before = whenLeft(response)
  for (const { aborted, reason } of [during, before]) assert.ok(aborted && reason instanceof ClientLeft)
  await assert.rejects(unlessLeft(new Promise(() => {}), before), ClientLeft)
})
